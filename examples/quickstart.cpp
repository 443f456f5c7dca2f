// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// `wc` over a directory tree, as a queue:  quickstart unix:///tmp/redis.sock /usr/include
//
// One process puts every regular file of the tree on the queue `files`. Workers count them, push
// the result to `counts` and ack; the first process adds up. On purpose
//   - some files are deleted after they were listed: they go through `files:retry` and,
//     after three attempts, to the dead list with the reason;
//   - a worker that holds messages is killed in the middle: a collector brings them back; a file
//     that was counted already is counted again, and the second count is dropped;
//   - some payloads on the queue are no messages.
// The totals printed are those of `wc`. Exits with 1 when something does not add up.

#include <orizuru/orizuru.hpp>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#ifndef WC_COUNTS_UNPRINTABLE // is a lone byte \1 a word? Not for the wc of Debian 12
#define WC_COUNTS_UNPRINTABLE false
#endif

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Number = std::uint64_t;

struct File { // on `files` and `files:retry`
    Number id = 0;
    std::string path;
    Number tries = 0;
    MSGPACK_DEFINE(id, path, tries)
};

struct Count { // on `counts`
    Number id = 0, lines = 0, words = 0, bytes = 0, tries = 0;
    MSGPACK_DEFINE(id, lines, words, bytes, tries)
};

struct Queues { // of one run, under unique names
    orizuru::Endpoint redis;
    std::string run = "quickstart-" + std::to_string(Clock::now().time_since_epoch().count());
    std::string files = run + ":files", retry = files + ":retry", counts = run + ":counts";
};

constexpr Number most_tries = 3, files_to_delete = 8;

/// Like `find directory -type f`.
std::vector<File> list(const std::filesystem::path& directory) {
    using namespace std::filesystem;
    std::vector<File> files;
    const auto options = directory_options::skip_permission_denied;
    for (const auto& entry : recursive_directory_iterator(directory, options)) {
        if (!entry.is_symlink() && entry.is_regular_file()) {
            files.push_back({files.size(), entry.path().string()});
        }
    }
    return files;
}

/// Like `LC_ALL=C wc`.
Count count(const File& file) {
    Count count{.id = file.id, .tries = file.tries};
    std::ifstream input(file.path, std::ios::binary);
    static char buffer[1 << 16];
    bool in_word = false;
    while (input.read(buffer, sizeof buffer) || input.gcount() > 0) {
        for (const char c : std::span(buffer, static_cast<std::size_t>(input.gcount()))) {
            const bool blank = c == ' ' || (c >= '\t' && c <= '\r');
            const bool begins_word = WC_COUNTS_UNPRINTABLE ? !blank : c > ' ' && c <= '~';
            count.lines += c == '\n';
            count.words += begins_word && !in_word;
            count.bytes += 1;
            in_word = begins_word || (in_word && !blank);
        }
    }
    return input.is_open() && !input.bad()
               ? count
               : throw std::system_error(errno, std::generic_category(), file.path);
}

/// A worker's life, until SIGTERM. The first one beyond the middle of the files is killed.
void work(const Queues& queues, const std::string& queue, Number middle) {
    orizuru::Connection redis(queues.redis);
    orizuru::Producer<Count> counts(queues.redis, queues.counts);
    orizuru::Consumer<File> files(queues.redis, queue,
                                  {.lease = 1s, .prefetch = 64, .ack = orizuru::AckMode::deferred});
    static auto& to_be_stopped = files;
    std::signal(SIGTERM, [](int) { to_be_stopped.stop(); });

    for (auto& file : files) { // the library buries bytes that are no File
        try {
            counts.push(count(*file));
            if (file->id >= middle && queue == queues.files &&
                redis.command("", "SET", queues.run + ":killed", 1, "NX").text == "OK") {
                std::raise(SIGKILL); // the worst moment: this file is counted and not acked
            }
            file.ack();
        } catch (const std::system_error& error) {
            // Each settlement is one step: whatever happens to this process, the file is in exactly
            // one queue.
            if (file->tries + 1 < most_tries) {
                file.push(queues.retry, {file->id, file->path, file->tries + 1});
            } else {
                file.bury(std::string(error.what()) + ", tried 3 times");
            }
        }
    }
}

/// Runs `work` in a process of its own. There must be no connection yet: a child cannot share it.
pid_t start_worker(const Queues& queues, const std::string& queue, Number middle) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL); // it dies with its parent, however that ends
        work(queues, queue, middle);
        std::_Exit(0);
    }
    return pid > 0 ? pid : throw std::system_error(errno, std::generic_category(), "fork");
}

struct Outcome {
    std::map<Number, Count> counted; // by id: a count that comes twice counts once
    Number duplicates = 0, reclaimed = 0, buried = 0, undecodable = 0, done = 0;
};

/// The last line of a terminal: the progress, and a sign that turns while nothing moves.
void draw(Number done, Number enqueued) {
    static std::size_t turn = 0;
    if (::isatty(STDOUT_FILENO) == 1) {
        std::cout << "\r[" << std::setw(50) << std::left << std::string(50 * done / enqueued, '#')
                  << "] " << done << '/' << enqueued << ' '
                  << (done < enqueued ? "|/-\\"[turn++ / 4 % 4] : ' ') << std::flush;
    }
}

/// Takes the counts and brings back the killed worker's messages, as long as any come.
Outcome collect(const Queues& queues, Number enqueued) {
    orizuru::Connection redis(queues.redis);
    orizuru::Consumer<Count> counts(queues.redis, queues.counts,
                                    {.prefetch = 1000, .ack = orizuru::AckMode::deferred});
    // A real collector leaves .grace as it is; but our Redis may be younger than those 10 s.
    orizuru::GarbageCollector collector(queues.redis, queues.files, {.grace = 0s});
    const auto length = [&](const std::string& list) {
        return static_cast<Number>(redis.command(list, "LLEN", list).integer);
    };
    Outcome outcome;
    bool killed = false;
    auto next_draw = Clock::now(), next_look = next_draw, give_up = next_draw + 30s;
    while ((outcome.done < enqueued || outcome.duplicates == 0) && Clock::now() < give_up) {
        if (auto count = counts.next(20ms)) {
            outcome.duplicates += outcome.counted.try_emplace((*count)->id, **count).second ? 0 : 1;
            count->ack();
            give_up = Clock::now() + 30s;
        }
        if (Clock::now() >= next_look) {
            next_look = Clock::now() + 100ms;
            outcome.reclaimed += collector.collect().reclaimed;
            outcome.undecodable = length(orizuru::Keys(queues.files).dead());
            outcome.buried = length(orizuru::Keys(queues.retry).dead());
            if (!killed && redis.command("", "EXISTS", queues.run + ":killed").integer == 1) {
                killed = true;
                std::cout << "\rA worker was killed on purpose; its messages come back after its "
                             "lease of 1 s.\n";
            }
        }
        outcome.done = outcome.counted.size() + outcome.buried + outcome.undecodable;
        if (Clock::now() >= next_draw) {
            next_draw = Clock::now() + 25ms;
            draw(outcome.done, enqueued);
        }
    }
    draw(outcome.done, enqueued);
    return outcome;
}

} // namespace

int main(int argc, char** argv) try {
    if (argc != 2 && argc != 3) {
        throw std::invalid_argument("usage: quickstart <redis-uri> [directory]");
    }
    auto files = list(std::filesystem::canonical(argc == 3 ? argv[2] : "include"));
    const Number middle = files.empty() ? throw std::runtime_error("no file") : files.size() / 2;
    const Queues queues{argv[1]};
    for (Number i = 0; i < files_to_delete; ++i) {
        const auto path = std::filesystem::temp_directory_path() / (queues.run + std::to_string(i));
        std::ofstream(path) << "not for long\n";
        files.push_back({files.size(), path});
        std::filesystem::remove(path);
    }
    std::vector<pid_t> workers{start_worker(queues, queues.retry, middle)};
    while (workers.size() < 5) {
        workers.push_back(start_worker(queues, queues.files, middle));
    }
    const std::vector<orizuru::Raw> no_files{{""}, {"hello"}, {"\xc1"}, {"\x93\x01"}, {"\x01\x02"}};
    const Number enqueued = files.size() + no_files.size();
    orizuru::Producer<File> producer(queues.redis, queues.files);
    producer.push_all(std::span(files).first(middle));
    orizuru::Producer<orizuru::Raw>(queues.redis, queues.files).push_all(no_files);
    producer.push_all(std::span(files).subspan(middle));
    const Outcome outcome = collect(queues, enqueued);

    int killed = 0, failed = 0;
    for (const pid_t worker : workers) {
        int status = 0;
        ::kill(worker, SIGTERM);
        ::waitpid(worker, &status, 0);
        (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? killed : failed) += status != 0;
    }
    Count total{.tries = outcome.buried * (most_tries - 1)};
    for (const auto& [id, count] : outcome.counted) {
        total.lines += count.lines;
        total.words += count.words;
        total.bytes += count.bytes;
        total.tries += count.tries;
    }
    std::cout << '\n' << total.lines << ' ' << total.words << ' ' << total.bytes << " total\n";
    for (const auto& [what, number] : std::initializer_list<std::pair<const char*, Number>>{
             {"enqueued", enqueued},
             {"counted", outcome.counted.size()},
             {"retried", total.tries},
             {"reclaimed", outcome.reclaimed},
             {"duplicates dropped", outcome.duplicates},
             {"buried", outcome.buried},
             {"undecodable", outcome.undecodable}}) {
        std::cout << std::setw(18) << std::right << what << std::setw(10) << number << '\n';
    }
    std::cout << "On purpose " << files_to_delete << " files were deleted, and " << no_files.size()
              << " payloads are no file:\n";
    orizuru::Connection redis(queues.redis);
    for (const std::string& queue : {queues.retry, queues.files}) {
        const auto dead = orizuru::Keys(queue).dead(); // of [2, payload, reason, milliseconds]
        for (const auto& entry : redis.command(dead, "LRANGE", dead, 0, -1).elements) {
            const auto fields = msgpack::unpack(entry.text.data(), entry.text.size());
            std::cout << "dead: " << fields->via.array.ptr[2].as<std::string>() << '\n';
        }
    }
    for (const auto& key : redis.command("", "KEYS", "*" + queues.run + ":*").elements) {
        redis.command(key.text, "DEL", key.text);
    }
    const bool all_is_well = outcome.done == enqueued && outcome.duplicates > 0 &&
                             outcome.buried >= files_to_delete &&
                             outcome.undecodable == no_files.size() && killed == 1 && failed == 0;
    std::cout << (all_is_well ? "All is accounted for.\n" : "This does not add up!\n");
    return all_is_well ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << "quickstart: " << error.what() << '\n';
    return 1;
}
