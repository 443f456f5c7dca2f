// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Asks the server for data and steps.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view api_js = R"js(
// Asks the server that this page has come from. The token arrives in the link's fragment, which no
// browser sends anywhere; this tab keeps it.

const KEPT = 'orizuru-token';

export class Refused extends Error {
    constructor(status, reason) {
        super(reason);
        this.status = status;
    }
}

export function takeToken() {
    const found = location.hash.match(/^#token=(.+)$/);
    if (found) {
        setToken(found[1]);
        history.replaceState(null, '', location.pathname + location.search + '#/');
    }
}

export function setToken(token) {
    sessionStorage.setItem(KEPT, token);
}

async function ask(method, route, headers = {}) {
    const token = sessionStorage.getItem(KEPT);
    if (token) {
        headers.Authorization = `Bearer ${token}`;
    }
    let response;
    try {
        response = await fetch(`api/${route}`, {method, headers, cache: 'no-store'});
    } catch {
        throw new Refused(0, 'The server of this page does not answer.');
    }
    if (!response.ok) {
        const {error} = await response.json().catch(() => ({}));
        throw new Refused(response.status, error ?? `The server answers ${response.status}.`);
    }
    return response;
}

export async function get(route) {
    return (await ask('GET', route)).json();
}

// Resolves to {done, sample}: whether it was done, and from which sample on the numbers show it. For
// what takes long also to {changed, more, until}: with `more`, it has to be taken again.
export async function post(route) {
    return (await ask('POST', route, {'X-Orizuru': '1'})).json();
}

export async function download(route, name) {
    const url = URL.createObjectURL(await (await ask('GET', route)).blob());
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
)js";

} // namespace orizuru::detail::web
