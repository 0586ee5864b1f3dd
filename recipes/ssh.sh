#!/bin/sh
# Workers on machines that ssh reaches:
#   ssh.sh start 4 alpha ann@beta    four on each machine; those that are at work stay as they are
#   ssh.sh stop alpha ann@beta       what their agents have made is pushed, and their tasks are given back
# RALPH_STORE and RALPH_REMOTE are set here. On each machine a login shell finds git, ralph and the agent, and ~/.pgpass has the
# password of the graph. Clones and logs are in ~/ralph there.
set -eu
verb=$1 count=0
shift
if [ "$verb" = start ]; then
  count=$1
  shift
fi

on() {
  ssh "$1" 'mkdir -p ralph && cat >ralph/worker.sh' <"$(dirname "$0")/worker.sh"
  ssh "$1" "env RALPH_STORE='$RALPH_STORE' RALPH_REMOTE='$RALPH_REMOTE' sh -ls '$verb' '$count'" <<'END'
cd ~/ralph || exit
# A process that was noted may be another program by now.
works() { ps -o args= -p "$(cat "$1" 2>/dev/null)" 2>/dev/null | grep -q -e 'worker\.sh' -e 'ralph run'; }
case $1 in
start)
  for n in $(seq "$2"); do
    works "$n.pid" && continue
    setsid sh -c 'echo $$ >"$0.pid"; exec sh worker.sh "$RALPH_REMOTE" "$PWD/$0"' "$n" </dev/null >>"$n.log" 2>&1 &
  done
  ;;
stop)
  for pid in *.pid; do
    works "$pid" && kill -TERM "$(cat "$pid")"
  done
  for pid in *.pid; do
    while works "$pid"; do sleep 1; done
  done
  ;;
esac
END
}

# All machines at once, as a stop takes up to 30 s.
all=''
for host; do
  on "$host" &
  all="$all $!"
done
code=0
for one in $all; do
  wait "$one" || code=1
done
exit "$code"
