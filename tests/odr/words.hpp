// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Words that other libraries and systems make macros of: no header of ours may use one as a name.
// The libraries that it includes do; whoever has such macros includes those before.

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

#if __has_include(<date/tz.h>)
#include <date/tz.h>
#endif
#include <hiredis/hiredis.h>
#include <msgpack.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#if __has_include(<pqxx/pqxx>)
#include <pqxx/pqxx>
#endif

#define signals public // Qt
#define slots
#define emit
#define foreach(element, container) for (element : container)
#define check(expression) static_cast<void>(expression) // macOS, AssertMacros.h
#define verify(expression) static_cast<void>(expression)
#define require(expression, label) static_cast<void>(expression)
#define small char // Windows
#define near
#define far
#define interface struct
#define BOOL int
#define ERROR 0
#define IN
#define OUT
#define TRUE 1
#define FALSE 0
#define DELETE 0x10000
#define VOID void
#define ABSOLUTE 1
