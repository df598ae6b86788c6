#!/usr/bin/env python3
"""Runs the tests of shared_test.py on NFS: tasks of segdl on several machines, of which some are killed.

It starts a server in user space, and for each machine a client with caches of its own (nfs.py, nfs_mount.c). Then it also

- kills the server, and starts it again;
- cuts a machine off until the tasks of the others have ended: its tasks then continue;
- cuts a machine off and starts its tasks on another one. The client of the first sends what it had not sent when the others have
  ended.

Without root, nginx or the packages that nfs.py names it prints "skipped: " and a reason. Prints one line for each check, and
exits with status 1 if one fails.
"""

import argparse
import os
import sys
import tempfile

import nfs
import shared_test
from support import run_tests


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared_test.add_arguments(parser)
    parser.add_argument("--machines", type=int, default=3)
    parser.add_argument("--restarts", type=int, default=1, help="of the server (default: %(default)s)")
    parser.add_argument("--cuts", type=int, default=0, help="machines cut off (default: %(default)s)")
    parser.add_argument("--losses", type=int, default=0, help="machines lost until the others have ended (default: %(default)s)")
    parser.add_argument(
        "--export", help="an existing directory on a file system with handles, such as ext4 (default: a temporary one)")
    parser.add_argument("--noalignwrite", action="store_true", help="mount with this option (Linux 6.13)")
    parser.add_argument(
        "--answers-per-loss", type=int, metavar="NUMBER",
        help="of so many answers to changes of names one is lost: the request is sent again, and finds that it was carried out")
    arguments = parser.parse_args()

    def tests(checks):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True, prefix="segdl-nfs-") as directory:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True, prefix="segdl-nfs-", dir=arguments.export) as export:
                options = ["noalignwrite"] if arguments.noalignwrite else []
                options += [f"answers-per-loss={arguments.answers_per_loss}"] if arguments.answers_per_loss else []
                with nfs.SharedDirectory(directory, os.path.realpath(export), arguments.machines, options) as shared:
                    print(f"ok      an NFS server runs, with {arguments.machines} clients", flush=True)

                    def restart(*_):
                        shared.restart_server()

                    def disruptions(dice):
                        scene = shared_test.Scene
                        found = [scene.kill] * arguments.kills + [restart] * arguments.restarts
                        found += [scene.cut_machine] * arguments.cuts + [scene.lose_machine] * arguments.losses
                        dice.shuffle(found)
                        return found

                    arguments.directories = shared.mounts
                    arguments.disruptions = disruptions
                    arguments.cut_off, arguments.connect = shared.cut_off, shared.connect
                    shared_test.run_on(checks, arguments)

    return run_tests(arguments, nfs.missing() or shared_test.missing(), tests)


if __name__ == "__main__":
    sys.exit(main())
