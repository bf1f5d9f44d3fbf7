#!/bin/sh
# Foxy behind systemd-socket-activate: the first connection starts Foxy, which takes over the socket.
# $1 is the program, $2 is a folder.
set -eu
program=$1 folder=$2

ip link set lo up
mkdir -p "$folder"
systemd-socket-activate --listen=127.0.0.1:3128 --setenv="STATE_DIRECTORY=$folder" \
	"$program" serve --store-size 64MiB 2>"$folder/messages" &
pid=$!
sleep 1
answer=$(curl -sS --max-time 30 -x http://127.0.0.1:3128 -o /dev/null -w '%{http_code}' http://127.0.0.1:25/) || answer=nothing
kill -TERM "$pid"
wait "$pid" || answer="an end of $?"
if [ "$answer" != 403 ] || ! grep -q 'forward proxy on 127.0.0.1:3128' "$folder/messages"; then
	echo "   FAILED: $answer in place of a refused port"
	cat "$folder/messages"
	exit 1
fi
echo "   ok: the first connection starts Foxy, which answers it"
