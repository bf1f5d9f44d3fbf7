#!/bin/sh
# Goes through the first steps of a new user of the package. The script runs as root in a new Debian
# system without a network; $1 and $2 are two revisions of the package.
set -eu
one=$1 two=$2
ip link set lo up

ok() { echo "   ok: $*"; }
fail() {
	echo "   FAILED: $*"
	[ -f /tmp/foxy.messages ] && tail -20 /tmp/foxy.messages
	exit 1
}
holds() { # text, part, what
	case $1 in *"$2"*) ok "$3" ;; *) fail "$3: no \"$2\" in: $1" ;; esac
}
wait_for() { # what, command...
	what=$1
	shift
	for _ in $(seq 100); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.1
	done
	fail "$what"
}

# Starts Foxy as the systemd unit starts it: with the unit's command, user and folders, and without a home
# folder.
start() {
	command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/foxy.service)
	env -i PATH=/usr/bin STATE_DIRECTORY=/var/lib/foxy LOGS_DIRECTORY=/var/log/foxy \
		setpriv --reuid foxy --regid foxy --init-groups --no-new-privs \
		$command 2>>/tmp/foxy.messages &
	pid=$!
	wait_for "the start" curl -sf http://127.0.0.1:3129/readyz
}
stop() {
	kill -TERM "$pid"
	wait "$pid" || fail "the end: $?"
}
get() { curl -sS -x http://127.0.0.1:3128 -D - -o /dev/null http://127.0.0.1:9000/page; }
log_lines() { [ "$(cat /var/log/foxy/access.log* 2>/dev/null | wc -l)" -ge "$1" ]; }

# An origin whose answers may be stored.
perl -MIO::Socket::INET -e '
	my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:9000", Listen => 9, ReuseAddr => 1) or die $!;
	while (my $client = $server->accept) {
		while (my $line = <$client>) { last if $line =~ /^\r?\n$/ }
		print $client "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
		close $client;
	}' &

dpkg --install "$one" >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; fail "installation"; }
ok "installed $(dpkg-query --show foxy)"
[ "$(stat -c %U:%G:%a /var/lib/foxy /var/log/foxy | sort -u)" = foxy:foxy:750 ] || fail "owners of the folders"
[ "$(dpkg-query --show --showformat='${Conffiles}' foxy | grep -c /etc/)" = 2 ] || fail "conffiles"
ok "user foxy, folders, conffiles"
foxy check --config /etc/foxy/foxy.toml >/tmp/check || fail "the configuration"
[ -f /usr/share/man/man1/foxy.1.gz ] && [ -f /usr/share/doc/foxy/third-party.txt.gz ] || fail "documents"

start
ok "started as user foxy, without HOME"
holds "$(get)" "fwd=uri-miss" "first request: a miss"
holds "$(get)" "foxy; hit" "second request: a hit"
wait_for "lines in the log" log_lines 2
grep -q "TCP_MEM_HIT/200" /var/log/foxy/access.log || fail "the hit in the log"
ok "log"
holds "$(curl -sS http://127.0.0.1:3129/metrics)" "foxy_requests_total" "metrics"
holds "$(curl -sS http://127.0.0.1:3129/)" "<html" "page"
holds "$(foxy why http://127.0.0.1:9000/page)" "answered from the cache" "why"
holds "$(foxy stats)" "equests" "stats"

# An added rule takes effect without a restart. A file with a mistake changes nothing.
cat >>/etc/foxy/foxy.toml <<'END'

[[access_rule]]
name = "no-secrets"
path = "/secret*"
action = "deny"
text = "Not for everybody."
END
before=$pid
holds "$(foxy reload 2>&1)" "access rules" "reload names what changed"
holds "$(curl -sS -x http://127.0.0.1:3128 -D - http://127.0.0.1:9000/secret)" "Not for everybody." "the new rule denies"
holds "$(get)" "foxy; hit" "what was stored is still served"
cp /etc/foxy/foxy.toml /tmp/right.toml
echo 'memory = "much"' >>/etc/foxy/foxy.toml
if foxy reload >/tmp/reload 2>&1; then fail "a wrong file was taken"; fi
holds "$(cat /tmp/reload)" "memory" "a wrong file is refused by the name of the setting"
cat /tmp/right.toml >/etc/foxy/foxy.toml
[ "$before" = "$pid" ] && kill -0 "$pid" || fail "it is another process"

# Without --force, logrotate would rotate the new log only after a day.
logrotate --force /etc/logrotate.d/foxy || fail "logrotate"
[ -f /var/log/foxy/access.log.1 ] || fail "the log was not moved"
wait_for "a new log" test -f /var/log/foxy/access.log
get >/dev/null
wait_for "lines in the new log" test -s /var/log/foxy/access.log
ok "logrotate moves the log, and Foxy goes on in a new one"

foxy purge http://127.0.0.1:9000/page >/dev/null || fail "purge"
holds "$(get)" "fwd=" "a miss after the purge"

stop
grep -q "SIGTERM" /tmp/foxy.messages || fail "the end says nothing"
start
holds "$(get)" "foxy; hit" "a hit after a restart"
stop

echo "# mine" >>/etc/foxy/foxy.toml
dpkg --install --force-confold "$two" >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; fail "upgrade"; }
grep -q "^# mine" /etc/foxy/foxy.toml || fail "the upgrade lost the configuration"
start
holds "$(get)" "foxy; hit" "a hit after the upgrade to $(dpkg-query --show foxy)"
stop

dpkg --remove foxy >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; fail "removal"; }
[ ! -e /usr/bin/foxy ] || fail "the program is still there"
[ -f /etc/foxy/foxy.toml ] && [ -f /var/lib/foxy/store ] || fail "the removal took configuration or contents"
ok "removed; configuration and contents stay"
dpkg --purge foxy >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; fail "purge of the package"; }
left=$(find /etc /usr /var /run /home /root -iname '*foxy*' -not -path '/var/lib/dpkg/*' -not -path '/var/cache/*')
[ -z "$left" ] || fail "left behind: $left"
ok "purged; nothing is left but the user"
