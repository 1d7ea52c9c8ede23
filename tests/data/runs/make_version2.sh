#!/bin/sh
# A run file of version 2 from one of version 3, without what version 3 added (traces/store/schema.cpp):
# sh make_version2.sh version3.stagewright version2.stagewright
set -eu
cp "$1" "$2"
sqlite3 "$2" 'DROP VIEW notes; DROP TABLE note; DROP TABLE bookmark; DROP TABLE saved_query; PRAGMA user_version=2; VACUUM;'
