# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

# Sourced by tests/run, examples/run and .ci/run: what they need and do not find is installed, build
# folders under build/ are set up, results are counted. Expects the source tree's path in root.

: "${root:?is to be set by the script that sources this}"

say() { printf '%s\n' "$*"; }

# --- what is needed -------------------------------------------------------------------------------
# Asked of the machine and not of its package manager: what came in another way is as good.

compiler() {
    local candidate
    for candidate in ${CXX:-} c++ g++ clang++; do
        if command -v "$candidate" >/dev/null; then
            printf '%s' "$candidate"
            return
        fi
    done
    return 1
}

has_command() { command -v "$1" >/dev/null; }
has_library() { has_command pkg-config && pkg-config --exists "$1"; }
# Its pkg-config file has another name on each system.
has_lua() { has_library lua5.1 || has_library lua-5.1 || has_library lua51; }
# Any Python will do that has the module: the one in PATH may be the user's own.
has_python() {
    local python
    for python in /usr/bin/python3 python3; do
        ! "$python" -c "import $1" 2>/dev/null || return 0
    done
    return 1
}
has_meson() {
    has_command meson &&
        [ "$(printf '1.0.0\n%s\n' "$(meson --version)" | sort -V | head -n 1)" = 1.0.0 ]
}
has_header() {
    local cxx
    cxx=$(compiler) &&
        printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" |
        "$cxx" -x c++ -E - >/dev/null 2>&1
}
# Of the standard library, or else of date.
has_time_zones() {
    local cxx
    has_header date/tz.h ||
        { cxx=$(compiler) &&
            printf '#include <version>\n#if __cpp_lib_chrono < 201907L\n#error\n#endif\n' |
            "$cxx" -std=c++20 -x c++ -E - >/dev/null 2>&1; }
}

# need PACKAGE WORDS CHECK...: when the check fails, PACKAGE (Debian's name) is missing; WORDS say
# what that is where there is no Debian.
need() {
    local package=$1 words=$2
    shift 2
    if ! "$@"; then
        missing_packages+=("$package")
        missing_words+=("$words")
    fi
}

# The server lies outside PATH in Debian; pg_config comes with libpq's headers.
has_postgres_server() { has_command pg_config && [ -x "$(pg_config --bindir)/initdb" ]; }

need_postgres() {
    need libpqxx-dev 'libpqxx 6.4 or newer, with its headers' has_library libpqxx
    need libpq-dev 'libpq, with its headers' has_library libpq
    need postgresql "PostgreSQL's server, 12 or newer" has_postgres_server
}

need_web() {
    need nlohmann-json3-dev 'nlohmann/json, its header' has_header nlohmann/json.hpp
    need libboost-dev 'Boost 1.74 or newer, its headers (boost/beast.hpp)' has_header boost/beast.hpp
}

need_build() {
    need g++ 'a C++20 compiler (g++ 12, clang 14 or newer)' compiler
    need meson 'Meson 1.0.0 or newer' has_meson
    need ninja-build 'Ninja' has_command ninja
    need pkg-config 'pkg-config (or pkgconf)' has_command pkg-config
    need libhiredis-dev 'hiredis 0.14 or newer, with its headers' has_library hiredis
    need libmsgpack-cxx-dev 'msgpack-c for C++, its headers (msgpack.hpp)' has_header msgpack.hpp
    need redis-server 'redis-server 7.0 or newer' has_command redis-server
}

# provide NEEDS: NEEDS is a function that calls need. Ends the script when something stays missing.
provide() {
    local missing_packages=() missing_words=() as_root=()
    "$1" >/dev/null
    [ ${#missing_packages[@]} -gt 0 ] || return 0

    if has_command apt-get; then
        say "Installing with apt-get: ${missing_packages[*]}"
        case " ${missing_packages[*]} " in
        *' redis-server '*)
            say "(Debian's redis-server starts a service on 127.0.0.1:6379; nothing here uses it.)"
            ;;
        esac
        case " ${missing_packages[*]} " in
        *' postgresql '*)
            say "(Debian's postgresql starts a service on 127.0.0.1:5432; nothing here uses it.)"
            ;;
        esac
        if [ "$(id -u)" -ne 0 ] && has_command sudo; then
            as_root=(sudo)
            [ -z "${CI:-}" ] || as_root=(sudo -n)
        fi
        # A list that cannot be fetched is often not the one that is needed.
        "${as_root[@]}" apt-get update -qq </dev/null || say 'apt-get update failed; going on'
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
            --no-install-recommends "${missing_packages[@]}" </dev/null || true
        missing_packages=() missing_words=()
        hash -r
        "$1" >/dev/null
        [ ${#missing_packages[@]} -gt 0 ] || return 0
        say 'These could not be installed. As root, try:'
        say "    apt-get install ${missing_packages[*]}"
    else
        say 'Please install, and run this again (in brackets the name in Debian):'
        local i
        for i in "${!missing_packages[@]}"; do
            say "    ${missing_words[i]} [${missing_packages[i]}]"
        done
    fi
    exit 1
}

# --- the sources that the wraps name --------------------------------------------------------------

wrap_value() { sed -n "s/^$2 = //p" "$root/subprojects/$1.wrap"; }

# cached WRAP: its tarball lies where Meson looks before it asks the network.
cached() {
    [ -f "$root/subprojects/packagecache/$(wrap_value "$1" source_filename)" ]
}

# private_apt FOLDER TYPE SUITE: a configuration of apt for packages of another Debian, of which
# nothing is installed: what runs with APT_CONFIG=FOLDER/apt.conf uses it.
private_apt() {
    local apt=$1 mirror
    has_command apt-get && [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] || return 1

    # The mirror that this machine uses, whichever it is.
    mirror=$(apt-get indextargets --format '$(SITE)' | grep -v -- security | head -n 1) || true
    [ -n "$mirror" ] || return 1

    mkdir -p "$apt"/{lists,archives}/partial "$apt"/{parts,sources}
    cat >"$apt/parts/other.sources" <<END
Types: $2
URIs: $mirror
Suites: $3
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
    cat >"$apt/apt.conf" <<END
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$apt/parts";
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt";
Acquire::Languages "none";
APT::Sandbox::User "root";
Acquire::http::Timeout "20";
END
}

# Unpacks Debian's Valkey into build/valkey, where apt has it.
fetch_valkey() {
    local apt=$root/build/valkey package
    [ ! -x "$apt/usr/bin/valkey-server" ] || return 0
    private_apt "$apt" deb bookworm-backports || return 1
    (
        cd "$apt/sources"
        export APT_CONFIG=$apt/apt.conf
        apt-get update -qq
        apt-get download -qq valkey-server valkey-tools
        for package in *.deb; do dpkg-deb -x "$package" "$apt"; done
    ) </dev/null
    "$apt/usr/bin/valkey-server" --version
}

# Unpacks headers of Boost that are new enough for <orizuru/boost_asio.hpp> into build/boost, where
# apt has them: Debian 12 cannot install them beside libmsgpack-cxx-dev, which wants older ones.
fetch_boost() {
    local apt=$root/build/boost
    [ ! -d "$apt/usr/include/boost" ] || return 0
    private_apt "$apt" deb bookworm || return 1
    (
        cd "$apt/sources"
        export APT_CONFIG=$apt/apt.conf
        apt-get update -qq
        apt-get download -qq libboost1.81-dev
        dpkg-deb -x libboost1.81-dev*.deb "$apt"
    ) </dev/null
}

# Puts the tarballs of hiredis and msgpack into subprojects/packagecache. Debian 13 has the same
# ones, byte for byte, as its source packages.
fetch_wrap_sources() {
    local wrap package file cache=$root/subprojects/packagecache apt=$root/build/apt
    if cached hiredis && cached msgpackc-cxx; then
        return 0
    fi
    private_apt "$apt" deb-src trixie || return 1
    mkdir -p "$cache"
    (
        cd "$apt/sources"
        export APT_CONFIG=$apt/apt.conf
        apt-get update -qq
        for package in hiredis msgpack-cxx; do
            apt-get source -qq --download-only --tar-only --only-source "$package"
        done
    ) </dev/null || return 1

    for wrap in hiredis:hiredis msgpackc-cxx:msgpack-cxx; do
        package=${wrap#*:} wrap=${wrap%:*}
        for file in "$apt/sources/$package"_*.orig.tar.gz; do
            if printf '%s  %s\n' "$(wrap_value "$wrap" source_hash)" "$file" |
                sha256sum --check --status; then
                cp "$file" "$cache/$(wrap_value "$wrap" source_filename)"
            fi
        done
        cached "$wrap" || return 1
    done
}

# --- building and testing -------------------------------------------------------------------------

# configure NAME OPTIONS...: sets up build/NAME, or again with what the machine has now. What was
# set up for a tree in another place, or cannot be used any more, is made anew.
configure() {
    local build=$root/build/$1
    shift
    # Everything the scripts need is there by now; nothing here should wait for a network.
    set -- --wrap-mode=nodownload "$@"
    if grep -qsF "\"source\": \"$root\"" "$build/meson-info/meson-info.json" &&
        meson setup --reconfigure "$@" "$build" "$root" </dev/null; then
        return 0
    fi
    rm -rf "$build"
    meson setup "$@" "$build" "$root" </dev/null
}

# count_results NAME: sets passed and failed from Meson's record of the last run in build/NAME. What
# was skipped has not passed.
count_results() {
    local log=$root/build/$1/meson-logs/testlog.json
    passed=0 failed=0
    [ -f "$log" ] || return 0
    read -r passed failed < <(python3 - "$log" <<'END'
import json, sys
results = [json.loads(line)["result"] for line in open(sys.argv[1], encoding="utf-8")]
passed = sum(result in ("OK", "EXPECTEDFAIL") for result in results)
print(passed, len(results) - passed)
END
    )
}

# forget_results NAME...: else those of an earlier run are taken for this one's.
forget_results() {
    local name
    for name; do
        rm -f "$root/build/$name/meson-logs/testlog.json"
    done
}

# tell_failures NAME...: which tests failed in the last runs in build/NAME..., and what they said.
tell_failures() { python3 "$root/tests/support/failed_tests.py" "${@/#/$root/build/}"; }

# What to run the tests under, if anything.
test_wrapper=()
# They wait for most of their time.
tests_per_cpu=6

# What clang's sanitizers need at setup, with lines to name and no more, for it is sooner compiled;
# then address and undefined behaviour, with the wrap's hiredis, which libFuzzer sees into. Not vptr:
# it looks at memory through a pipe, and a process that can have no more descriptors fails by it.
sanitized=(-Db_lundef=false -Ddebug=false
    '-Dcpp_args=-fno-sanitize-recover=all -fno-sanitize=vptr -gline-tables-only')
fuzzed=("${sanitized[@]}" -Db_sanitize=address,undefined
    -Dc_args=-fsanitize=fuzzer-no-link --force-fallback-for=hiredis)

clang_sanitizes() {
    printf 'int main() {}' | clang++ -fsanitize=thread -x c++ - -o /dev/null 2>/dev/null
}

# Makes ready for programs with sanitizers. Those of clang 14 do not come to terms with the wide
# address randomisation of newer kernels.
run_sanitized() {
    tests_per_cpu=2
    if setarch -R true 2>/dev/null; then
        test_wrapper=(setarch -R)
    fi
    export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
    export UBSAN_OPTIONS=print_stacktrace=1
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    TSAN_OPTIONS+=:suppressions="'$root/tests/support/threads.supp'"
}

# run_tests NAME OPTIONS...: builds and runs the tests of build/NAME (OPTIONS are meson test's). Sets
# passed and failed; a build that fails, and one without a test, is one failure.
run_tests() {
    local name=$1 build=$root/build/$1
    shift
    passed=0 failed=1
    forget_results "$name"
    # It builds what they run first. The time limits are for a test that hangs, not for a slow machine.
    "${test_wrapper[@]}" meson test -C "$build" --print-errorlogs --timeout-multiplier 4 \
        --num-processes $(($(nproc) * tests_per_cpu)) "$@" </dev/null || true
    count_results "$name"
    if [ $((passed + failed)) -eq 0 ]; then
        say 'There was no test to run.'
        failed=1
    fi
    [ "$failed" -eq 0 ]
}
