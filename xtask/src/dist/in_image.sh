#!/bin/sh
# Runs the program of a container image as a container engine does: as the image's user, with only the image's
# files, and with a filter that refuses io_uring. $1 is the image, $2 is a folder that does not exist yet.
set -eu
image=$1 root=$2

fail() {
	echo "   FAILED: $*"
	[ -f "$root.messages" ] && cat "$root.messages"
	exit 1
}

ip link set lo up
mkdir "$root" "$root.layout"
tar -C "$root.layout" -xf "$image"
# The layer is the largest blob.
layer=$(ls -S "$root.layout/blobs/sha256" | head -1)
tar -C "$root" -xzf "$root.layout/blobs/sha256/$layer"
mkdir "$root/proc" "$root/dev"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"

# A filter that answers io_uring_setup (425 on all architectures) with EPERM, as container engines do.
# prctl is 157 on x86_64 and 167 elsewhere.
env -i PATH=/usr/bin STATE_DIRECTORY=/var/lib/foxy "$(command -v perl)" -e '
	my $prctl = `uname -m` =~ /x86_64/ ? 157 : 167;
	my $rules = pack("SCCL" x 4, 0x20, 0, 0, 0, 0x15, 0, 1, 425, 0x06, 0, 0, 0x50001, 0x06, 0, 0, 0x7fff0000);
	my $program = pack("SxxxxxxP", 4, $rules);
	syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
	syscall($prctl, 22, 2, $program) == 0 or die "seccomp: $!";
	exec @ARGV or die $!;
' "$(command -v chroot)" --userspec=65532:65532 "$root" /usr/bin/foxy serve --config /etc/foxy/foxy.toml >"$root.log" 2>"$root.messages" &
pid=$!
for _ in $(seq 100); do
	curl -sf http://127.0.0.1:3129/readyz >/dev/null && break
	sleep 0.1
done
curl -sf http://127.0.0.1:3129/readyz >/dev/null || fail "it does not become ready"
grep -q "io_uring" "$root.messages" || fail "the refusal of io_uring is not reported"
answer=$(curl -sS -x http://127.0.0.1:3128 -o /dev/null -w '%{http_code}' http://127.0.0.1:25/)
[ "$answer" = 403 ] || fail "a refused port: $answer"
[ "$(stat -c %u "$root/var/lib/foxy/store")" = 65532 ] || fail "the owner of the store"
kill -TERM "$pid"
wait "$pid" || fail "the end: $?"
grep -q '"status":403' "$root.log" || fail "the log on standard output"
echo "   ok: serves as user 65532 without io_uring, logs to standard output, ends in order"
