# Two packages: the command line without Qt, the window with it; unpacked, they work.
# shellcheck shell=bash
for tool in dpkg-deb dpkg-shlibdeps; do command -v $tool >/dev/null || skip "$tool is absent (dpkg-dev)"; done
[ -z "$SANITIZED" ] || skip 'a sanitizer build is not packaged'
run "$CPACK" --config "$BUILD/CPackConfig.cmake" -G DEB -B "$WORK/packages"
expect_code 0
headless=$(find packages -maxdepth 1 -name 'stagewright_*.deb')
expect_file "$headless"
run dpkg-deb -I "$headless"
expect_out '^ Package: stagewright$'
expect_out "^ Version: $VERSION"
expect_out '^ Depends: .*libc6'
expect_out '^ Depends: .*libsqlite3'
expect_no_out 'libqt'
expect_no_out '^ Conflicts'
run dpkg-deb -c "$headless"
expect_out ' ./usr/bin/stagewright$'
expect_out ' ./usr/share/man/man1/stagewright.1.gz$'
expect_out ' ./usr/share/bash-completion/completions/stagewright$'
expect_out ' ./usr/share/mime/packages/org.stagewright.Stagewright.xml$'
expect_out ' ./usr/share/stagewright/lessons/'
expect_no_out 'stagewright-ui'
expect_no_out '\.(a|h|cmake)$'
dpkg-deb -x "$headless" root
run env -i HOME=/nonexistent PATH=/usr/bin:/bin root/usr/bin/stagewright simulate --schedule zb-h1 --json
expect_code 0
run ldd root/usr/bin/stagewright
expect_no_out 'libQt'
if [ "$WINDOW" = ON ]; then
    window=$(find packages -maxdepth 1 -name 'stagewright-ui_*.deb')
    expect_file "$window"
    run dpkg-deb -I "$window"
    expect_out '^ Package: stagewright-ui$'
    expect_out '^ Depends: .*libqt6widgets6'
    expect_out "^ Depends: .*stagewright \(= $VERSION\)"
    expect_no_out '^ Conflicts'
    run dpkg-deb -c "$window"
    expect_out ' ./usr/bin/stagewright-ui$'
    expect_out ' ./usr/share/applications/org.stagewright.Stagewright.desktop$'
    expect_out ' ./usr/share/icons/hicolor/scalable/apps/org.stagewright.Stagewright.svg$'
    expect_out ' ./usr/share/man/man1/stagewright-ui.1.gz$'
    expect_no_out ' ./usr/bin/stagewright$'
    # No file in both, so that they can be installed together.
    dpkg-deb -c "$headless" | awk '$1 !~ /^d/ { print $6 }' | sort >a
    dpkg-deb -c "$window" | awk '$1 !~ /^d/ { print $6 }' | sort >b
    expect_same "$(comm -12 a b)" ''
    dpkg-deb -x "$window" root
    run env -i HOME="$WORK" PATH=/usr/bin:/bin QT_QPA_PLATFORM=offscreen root/usr/bin/stagewright-ui --screenshot empty.png --size 1280x720
    expect_code 0
fi
module=$(find packages -maxdepth 1 -name 'stagewright-cuda_*.deb')
if [ "$CUDA" = ON ]; then
    expect_file "$module"
    run dpkg-deb -I "$module"
    expect_out '^ Package: stagewright-cuda$'
    expect_out "^ Depends: .*stagewright \(= $VERSION\)"
    run dpkg-deb -c "$module"
    expect_out ' ./usr/lib/.*stagewright/libstagewright_cuda.so$'
    dpkg-deb -x "$module" root
    run env -i HOME="$WORK" PATH=/usr/bin:/bin root/usr/bin/stagewright devices
    expect_out 'module: .*root/usr/.*lib/.*libstagewright_cuda.so'
else
    expect_same "$module" ''
fi
if command -v lintian >/dev/null; then
    # shellcheck disable=SC2046
    run lintian --fail-on error --suppress-tags bad-distribution-in-changes-file,initial-upload-closes-no-bugs $(find packages -maxdepth 1 -name '*.deb')
    expect_code 0
    printf '%s\n' "$out"
else
    echo 'lintian is absent'
fi
