// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One call of the program `orizuru`: what it was asked, and where it answers.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/timed_wait.hpp>
#include <orizuru/detail/ops/cli/screen.hpp>
#include <orizuru/detail/ops/cli/visible_text.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/ops/queue_state.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail::cli {

/// Its fields stay in the order in which they are set.
using Json = nlohmann::ordered_json;

/// The parsed arguments.
struct CliOptions {
    std::string url = "redis://127.0.0.1:6379";
    bool json = false;
    bool full = false;
    bool scan = false;
    bool yes = false;
    bool dry_run = false;
    std::vector<std::string> queues;
    std::string queue;
    std::string id;
    std::string to;
    std::string why;
    std::optional<Place> where = {};
    std::optional<std::string> reason = {};
    std::optional<std::chrono::milliseconds> older = {};
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
    std::int64_t skip = 0;
    std::int64_t count = 20;
    std::chrono::milliseconds again_after{}; ///< 0: once
};

struct CliStreams {
    std::ostream& out;
    std::ostream& err;
    /// Returns the token of the stop that ends a command that goes on. Called once, when there is
    /// such a command.
    std::function<std::stop_token()> stop;
    Screen screen = Screen::none;
};

inline void complain(const CliStreams& streams, const VisibleText& reason) {
    streams.err << "orizuru: " << reason << '\n';
}

/// One call of a command: its options, its Inspector and its output.
class CliCall {
  public:
    using Formats =
        std::map<std::string, std::function<std::string(const PlacedMessage&)>, std::less<>>;

    CliCall(const CliOptions& options, Endpoint endpoint, const Formats& formats,
            const CliStreams& streams)
        : m_options(options),
          m_endpoint(std::move(endpoint)),
          m_formats(formats),
          m_streams(streams) {}

    [[nodiscard]] const CliOptions& options() const noexcept { return m_options; }
    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }
    [[nodiscard]] Inspector& inspector() noexcept { return m_inspector; }

    /// The queues that the arguments name, else those that workers list, or that a search finds,
    /// which is made once.
    [[nodiscard]] std::vector<std::string> queues() {
        if (!m_options.queues.empty()) {
            return m_options.queues;
        }
        if (m_options.scan && !m_scanned) {
            m_scanned = m_inspector.find_queues();
        }
        std::vector<std::string> queues = m_scanned ? *m_scanned : m_inspector.queues();
        std::erase_if(queues, [this](const std::string& queue) { return is_impossible(queue); });
        if (queues.empty()) {
            m_streams.err << "orizuru: "
                          << (m_scanned ? "there is no queue\n"
                                        : "workers list no queue; --scan searches for others\n");
        }
        return queues;
    }

    /// Calls `look` with each of these queues. One that no argument names and that is refused is
    /// left out, and told of once: then the answer is not whole.
    void each_queue(const auto& look) {
        for (const std::string& queue : queues()) {
            if (!m_options.queues.empty()) {
                look(queue);
                continue;
            }
            try {
                look(queue);
            } catch (const ConnectionError&) {
                throw;
            } catch (const std::exception& error) {
                leave_out(queue, error);
            }
        }
    }
    /// Returns what leaves a refused queue out, as each_queue does; for a look at many together.
    [[nodiscard]] Inspector::Refused leaving_out() {
        if (!m_options.queues.empty()) {
            return {};
        }
        return [this](const std::string& queue, const std::exception& reason) {
            leave_out(queue, reason);
        };
    }
    /// The terminal that an answer given again and again must fit; none: it need not.
    [[nodiscard]] std::optional<ScreenSize> screen_to_fit() const {
        const bool fits = m_options.again_after.count() != 0 &&
                          m_streams.screen == Screen::terminal && !m_options.json;
        return fits ? std::optional(size_of_stdout()) : std::nullopt;
    }
    /// True if a terminal shows the answer as it is.
    [[nodiscard]] bool on_terminal() const noexcept { return m_streams.screen != Screen::none; }

    [[nodiscard]] bool is_whole() const noexcept { return m_left_out.empty(); }

    /// Answers with the document that `document` returns, in a line, or with what `write` writes.
    void answer(const auto& document, const auto& write) {
        if (m_options.json) {
            // In ASCII: then nothing in it moves a terminal. Bytes that are no UTF-8 are U+FFFD.
            m_answer +=
                Json(document()).dump(-1, ' ', true, Json::error_handler_t::replace).append("\n");
        } else {
            std::ostringstream text;
            write(text);
            m_answer += text.str();
        }
    }

    /// Calls `look`, which answers; again and again until a stop, if the arguments say so.
    void repeat(const auto& look) {
        if (m_options.again_after.count() == 0) {
            look();
            return;
        }
        const std::stop_token stop = m_streams.stop();
        while (!stop.stop_requested() && m_streams.out) {
            const TimePoint next = deadline_in(m_options.again_after);
            look();
            m_streams.screen == Screen::terminal ? redraw() : write();
            sleep_until(next, stop);
        }
    }

    /// Writes the answer.
    void write() {
        m_streams.out << m_answer << std::flush;
        m_answer.clear();
    }

    /// True if the user has a formatter for the queue.
    [[nodiscard]] bool has_format() const { return m_formats.contains(m_options.queue); }
    /// Returns what that makes of a message with this payload.
    [[nodiscard]] std::string formatted(const PlacedMessage& message,
                                        std::string_view payload) const {
        try {
            return m_formats.find(m_options.queue)->second(message);
        } catch (const std::exception& error) {
            return joined({"(", error.what(), ") ", payload});
        }
    }

  private:
    void leave_out(const std::string& queue, const std::exception& reason) {
        if (m_left_out.insert(queue).second) {
            complain(m_streams, joined({"queue '", queue, "': ", reason.what()}));
        }
    }
    /// Anyone who may add to the list of queues may add such a name: it must not make each answer
    /// one that is not whole. Tells of it once.
    [[nodiscard]] bool is_impossible(const std::string& queue) {
        try {
            const Keys keys(queue);
            return false;
        } catch (const std::invalid_argument& error) {
            if (m_impossible.insert(queue).second) {
                complain(m_streams, joined({"queue '", queue, "' is left out: ", error.what(),
                                            "; `forget` takes it off the list"}));
            }
            return true;
        }
    }

    /// Over the answer before. To clear the screen first would make it flicker.
    void redraw() {
        m_streams.out << (m_drawn ? "\x1b[H" : "\x1b[2J\x1b[H");
        for (const char c : m_answer) {
            c == '\n' ? m_streams.out << "\x1b[K\n" : m_streams.out << c;
        }
        m_streams.out << "\x1b[J" << std::flush;
        m_answer.clear();
        m_drawn = true;
    }

    const CliOptions& m_options;
    Endpoint m_endpoint;
    Inspector m_inspector{m_endpoint};
    const Formats& m_formats;
    const CliStreams& m_streams;
    std::optional<std::vector<std::string>> m_scanned;
    std::set<std::string> m_left_out;
    std::set<std::string> m_impossible;
    std::string m_answer;
    bool m_drawn = false;
};

} // namespace orizuru::detail::cli
