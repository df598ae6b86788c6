#!/bin/sh
# Fetches the files of a list with eight processes of GNU parallel, on this machine or on several.
#
#   ./parallel.sh list.txt files
#   NODES=node1,node2 ./parallel.sh list.txt files    starts them with ssh; all paths are on a shared file system
#
# One process has many connections already. Several use more cores, or the network of several machines.
set -eu
list=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
tasks=${TASKS:-8}
# Tasks are numbered from 1. After a failure the same command continues; --retries repeats the tasks that failed.
set -- parallel --will-cite -j "$tasks" --retries 3 --halt soon,fail=1
if [ -n "${NODES:-}" ]; then
    count=$(echo "$NODES" | tr , '\n' | wc -l)
    # -j is for each node.
    set -- "$@" -j "$(((tasks + count - 1) / count))" --sshlogin "$NODES"
fi
seq "$tasks" | "$@" segdl --shard "{}/$tasks" --job "$list.segdl-job" -i "$list" -d "$out" --quiet
