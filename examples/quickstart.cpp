// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// `wc` over a directory tree, as a queue.
//
//     quickstart <redis-uri> [directory]         e.g. quickstart unix:///tmp/redis.sock /usr/include
//
// One process puts every regular file of the tree on the queue `files`. Four workers read them and
// push what they counted to the queue `counts`, where the first process adds it up. On purpose:
//
//   - some files are deleted after they were listed. Each goes through `files:retry` and is, after
//     three tries, on the dead list with the reason;
//   - in the middle a worker is killed (SIGKILL) while it holds messages. A collector finds it dead
//     and brings them back; what it had counted already is counted again, and dropped;
//   - some bytes on the queue are no message at all.
//
// It prints a table, whose totals are those of `wc`, and exits with 1 when something does not add
// up. `examples/run` runs it with a Redis of its own.

#include <orizuru/orizuru.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#ifndef DEFAULT_DIRECTORY
#define DEFAULT_DIRECTORY "include"
#endif
#ifndef WC_COUNTS_UNPRINTABLE_WORDS // asked of this machine's wc by meson.build
#define WC_COUNTS_UNPRINTABLE_WORDS 0
#endif

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct File { // on `files` and `files:retry`
    std::uint64_t id = 0;
    std::string path;
    int tries = 0;
    MSGPACK_DEFINE(id, path, tries);
};

struct Count { // on `counts`
    std::uint64_t id = 0, lines = 0, words = 0, bytes = 0;
    int tries = 0;
    MSGPACK_DEFINE(id, lines, words, bytes, tries);
};

constexpr int workers_on_files = 4;
constexpr int most_tries = 3;
constexpr int deleted_files = 8;
constexpr auto lease = 1s; // short, so that the wait for the killed worker's messages is, too
const std::vector<orizuru::Raw> no_messages{{""}, {"hello"}, {"\xc1"}, {"\x93\x01"}, {"\x2a\x2a"}};

/// The queues of this run, under names that nobody else has; their keys go with the object.
struct Queues {
    orizuru::Endpoint redis;
    std::string run;
    std::string files = run + ":files", retry = files + ":retry", counts = run + ":counts";

    ~Queues() try {
        orizuru::Connection connection(redis);
        std::string cursor = "0";
        do {
            const auto page = connection.command("", "SCAN", cursor, "MATCH", "*" + run + ":*");
            cursor = page.elements.at(0).text;
            for (const auto& key : page.elements.at(1).elements) {
                connection.command(key.text, "DEL", key.text);
            }
        } while (cursor != "0");
    } catch (const std::exception& error) {
        std::cerr << "not all keys of " << run << " are removed: " << error.what() << '\n';
    }
};

/// Like `find directory -type f`.
void list(const std::filesystem::path& directory, std::vector<File>& files) {
    using namespace std::filesystem;
    for (const directory_entry& entry :
         recursive_directory_iterator(directory, directory_options::skip_permission_denied)) {
        if (!entry.is_symlink() && entry.is_regular_file()) {
            files.push_back({files.size(), entry.path().string()});
        }
    }
}

/// Like `LC_ALL=C wc`. Throws std::system_error when the file cannot be read.
Count count(const File& file) {
    const auto fail = [] { throw std::system_error(errno, std::generic_category()); };
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> input(
        std::fopen(file.path.c_str(), "rb"), [](std::FILE* opened) { return std::fclose(opened); });
    if (!input) {
        fail();
    }
    Count count{.id = file.id, .tries = file.tries};
    bool in_word = false;
    static std::array<char, 1 << 18> buffer;
    while (const auto size = std::fread(buffer.data(), 1, buffer.size(), input.get())) {
        count.bytes += size;
        for (const char c : std::span(buffer).first(size)) {
            const bool blank = c == ' ' || (c >= '\t' && c <= '\r');
            const bool starts_word = WC_COUNTS_UNPRINTABLE_WORDS ? !blank : c > ' ' && c < '\x7f';
            count.lines += c == '\n';
            count.words += starts_word && !in_word;
            in_word = starts_word || (in_word && !blank);
        }
    }
    if (std::ferror(input.get()) != 0) {
        fail();
    }
    return count;
}

/// Ends the consumer's loop at SIGTERM and Ctrl-C. Both were blocked until here, so that none ends
/// a process that has not come this far.
template <class T>
void stop_at_signals(orizuru::Consumer<T>& consumer) {
    static orizuru::Consumer<T>* consumer_of_this_process = nullptr;
    consumer_of_this_process = &consumer;
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT}) {
        std::signal(signal, [](int) { consumer_of_this_process->stop(); });
        sigaddset(&signals, signal);
    }
    sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

/// A worker's life. Whoever has counted file `middle` or a later one, and finds a byte in the pipe
/// `fatal`, dies of it.
void work(const Queues& queues, const std::string& queue, std::uint64_t middle, int fatal) {
    orizuru::Producer<Count> counts(queues.redis, queues.counts);
    orizuru::Consumer<File> files(
        queues.redis, queue,
        {.lease = lease, .prefetch = 64, .ack = orizuru::AckMode::deferred});
    stop_at_signals(files);

    for (auto& file : files) { // bytes that are no File go to the dead list without us
        try {
            // A crash between push and ack has the file counted twice: that is "at least once".
            counts.push(count(*file));
            if (char byte = 0; file->id >= middle && ::read(fatal, &byte, 1) == 1) {
                std::raise(SIGKILL);
            }
            file.ack();
        } catch (const std::system_error& error) {
            // Either is one step: whatever happens to us, the file is in one of the queues.
            if (file->tries + 1 < most_tries) {
                file.push(queues.retry, {file->id, file->path, file->tries + 1});
            } else {
                file.bury(error.code().message() + ", tried 3 times");
            }
        }
    }
}

/// Child processes. No connection may exist yet when they start: one cannot be shared by two.
class Workers {
  public:
    template <class... Arguments>
    void start(const Arguments&... arguments) {
        const pid_t pid = ::fork();
        if (pid < 0) {
            throw std::system_error(errno, std::generic_category(), "fork");
        }
        if (pid == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGTERM);
            try {
                work(arguments...);
                std::_Exit(0); // what else there is belongs to the parent
            } catch (const std::exception& error) {
                std::cerr << "worker: " << error.what() << '\n';
                std::_Exit(1);
            }
        }
        m_running.push_back(pid);
    }
    void stop() {
        for (const pid_t pid : m_running) {
            ::kill(pid, SIGTERM);
        }
        for (const pid_t pid : m_running) {
            int status = 0;
            ::waitpid(pid, &status, 0);
            killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            stopped += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
        m_running.clear();
    }
    ~Workers() { stop(); }

    int killed = 0, stopped = 0;

  private:
    std::vector<pid_t> m_running;
};

void draw_progress(std::uint64_t done, std::uint64_t all) {
    if (static const bool terminal = ::isatty(STDOUT_FILENO) == 1; terminal) {
        std::cout << "\r[" << std::left << std::setw(50) << std::string(50 * done / all, '#')
                  << "] " << done << " of " << all << std::right << std::flush;
    }
}

bool run(const orizuru::Endpoint& redis, const std::filesystem::path& directory) {
}

} // namespace

int main(int argc, char** argv) {
}
