// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the users of the queue `q`: its messages, and the book of their answers. Exceptions of
// the library are recorded and pass through.

#pragma once

#include "crash/support/library_call.hpp"
#include "support/ledger.hpp"
#include "support/redis_client.hpp"

#include <orizuru/codec.hpp>
#include <orizuru/error.hpp>

#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

class QueueUsers {
  public:
    /// `server`: the real Redis; `socket`: the one that the users connect to.
    QueueUsers(const std::string& server, std::string socket)
        : m_real(server), m_socket(std::move(socket)) {
        m_real.flushall();
        m_real.command({"ACL", "SETUSER", "clerk", "on", ">open-sesame", "~*", "&*", "+@all"});
    }

    /// Every connection greets by AUTH, SELECT and CLIENT SETNAME from now on, not by PING.
    void log_in() {
        m_logs_in = true;
        m_real.command({"SELECT", "1"});
    }
    /// After a break it is unknown whether a buffered LPUSH has run: it is repeated.
    void expect_repeats() { m_repeats = true; }

    bool registered() { return m_real.exists("orizuru:{q}:consumers"); }

  protected:
    /// Far longer than the longest pause between two attempts.

    static void require(bool holds, const std::string& otherwise) {
        if (!holds) {
            throw std::runtime_error(otherwise);
        }
    }

    [[nodiscard]] std::string uri() const {
        const std::string server =
            m_logs_in ? "unix://clerk:open-sesame@" + m_socket + "?db=1&client_name=clerk&"
                      : "unix://" + m_socket + "?";
        return server + "command_timeout=6000";
    }
    RedisClient& redis() { return m_real; }
    Ledger& ledger() { return m_ledger; }

    Raw new_message() { return {"message number " + std::to_string(++m_messages)}; }
    /// A message by another producer.
    void publish(const std::string& list = "q") {
        const std::string message = new_message().bytes;
        m_ledger.pushing(message);
        m_real.lpush(list, {message});
        m_ledger.pushed(message);
    }
    void handed_out(const std::string& message) { m_ledger.handed_out(message); }

    /// Buffered messages are pushed when they are accepted.
    template <class Action>
    void pushing(const std::vector<Raw>& messages, Action action) {
        for (const Raw& message : messages) {
            m_ledger.pushing(message.bytes);
            if (m_repeats) {
                m_ledger.may_repeat(message.bytes);
            }
        }
        try {
            in_library([&] { action(messages); });
        } catch (const ConnectionError& error) {
            write_down(messages, error.pushed(), error.in_doubt());
            throw;
        } catch (const ReplyError& error) {
            write_down(messages, error.pushed(), false);
            throw;
        }
        write_down(messages, messages.size(), false);
    }

    /// Settles a message; returns whether that is done.
    template <class Guard, class How>
    bool settling(Guard& guard, Place to, How how) {
        const std::string message = guard->bytes;
        m_ledger.settling(message, to);
        const auto not_done = [&] { m_ledger.not_settled(message, to); };
        try {
            const bool done = in_library([&] { return how(guard); });
            done ? m_ledger.settled(message, to) : not_done();
            return done;
        } catch (const ReplyError&) {
            not_done();
            require(!guard.settled(), "a refused guard counts as settled");
            throw;
        } catch (const std::bad_alloc&) {
            // The settlement goes on in the background, or has not begun.
            if (!guard.settled()) {
                not_done();
            }
            throw;
        }
    }

  private:
    void write_down(const std::vector<Raw>& messages, std::size_t certain, bool in_doubt) {
        for (std::size_t i = 0; i < messages.size(); ++i) {
            if (i < certain) {
                m_ledger.pushed(messages[i].bytes);
            } else if (!in_doubt) {
                m_ledger.not_pushed(messages[i].bytes);
            }
        }
    }

    RedisClient m_real;
    std::string m_socket;
    bool m_logs_in = false;
    bool m_repeats = false;
    Ledger m_ledger{"q"};
    int m_messages = 0;
};

} // namespace orizuru::test
