// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The page's style: one column, hairlines, colour for trouble only.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view page_css = R"css(
:root {
    color-scheme: light dark;
    --paper: #ffffff;
    --ink: #1a1c1e;
    --quiet: #6b7280;
    --faint: #aeb3bb;
    --line: #e3e5e8;
    --hover: #f7f8f9;
    --warn: #b45309;
    --bad: #b91c1c;
    --link: #2563eb;
}
@media (prefers-color-scheme: dark) {
    :root {
        --paper: #121416;
        --ink: #e6e8ea;
        --quiet: #9aa1ab;
        --faint: #5c636d;
        --line: #2a2e33;
        --hover: #1a1d20;
        --warn: #f0a04b;
        --bad: #f2777a;
        --link: #79a8ff;
    }
}

* { box-sizing: border-box; }
body {
    max-width: 1120px;
    margin: 0 auto;
    padding: 0 20px 60px;
    background: var(--paper);
    color: var(--ink);
    font: 15px/1.4 system-ui, sans-serif;
    font-variant-numeric: tabular-nums;
}
a { color: inherit; text-decoration: none; }
a:hover { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px; }
[hidden] { display: none !important; }
.quiet { color: var(--quiet); }
.warn { color: var(--warn); }
.bad { color: var(--bad); }
.zero { color: var(--faint); }
bdi { unicode-bidi: isolate; }

header {
    display: flex;
    align-items: baseline;
    gap: 16px;
    padding: 18px 0;
    border-bottom: 1px solid var(--line);
}
.brand { font-weight: 650; margin-right: 8px; }
nav { display: flex; gap: 16px; color: var(--quiet); }
nav a[aria-current] { color: var(--ink); }
#state { margin-left: auto; color: var(--quiet); font-size: 13px; }
#trouble { margin: 16px 0 0; color: var(--bad); overflow-wrap: anywhere; }

.numbers { display: grid; grid-template-columns: repeat(5, 1fr); margin: 28px 0; }
.numbers > div { padding: 0 20px; border-left: 1px solid var(--line); min-width: 0; }
.numbers > div:first-child { padding-left: 0; border-left: 0; }
.numbers dt { color: var(--quiet); font-size: 13px; }
.numbers dd { margin: 0; font-size: 26px; line-height: 1.45; font-weight: 650; }

.heading { display: flex; align-items: baseline; gap: 10px; margin: 24px 0 0; }
.heading h1 { margin: 0; font-size: 20px; font-weight: 650; overflow-wrap: anywhere; min-width: 0; }
.heading .tags { flex: 1; }
.tag { margin-left: 8px; font-size: 13px; font-weight: 400; white-space: nowrap; }

table { width: 100%; border-collapse: collapse; table-layout: fixed; }
th {
    padding: 6px 0 6px 16px;
    color: var(--quiet);
    font-size: 13px;
    font-weight: 400;
    text-align: right;
    vertical-align: bottom;
}
td { height: 44px; padding: 4px 0 4px 16px; text-align: right; }
tr > :first-child { padding-left: 0; }
tr > .text { text-align: left; }
tr { border-bottom: 1px solid var(--line); }
td { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
tbody tr[tabindex] { cursor: pointer; }
tbody tr[tabindex]:hover { background: var(--hover); }
tbody tr[tabindex]:focus-visible { outline-offset: -2px; }
.name { width: 28%; }
.name > span { display: flex; align-items: baseline; }
.name a { overflow: hidden; text-overflow: ellipsis; font-weight: 600; }
.step { width: 104px; overflow: visible; }
.spark { width: 158px; }
.spark svg { display: block; width: 110px; height: 20px; margin-left: auto; }
.spark path { fill: none; stroke: var(--link); stroke-width: 1.3; stroke-linejoin: round; }
html { scrollbar-gutter: stable; }
.messages th:first-child { width: 44%; }
.messages th:nth-child(2) { width: 28%; }
.days svg { display: block; width: 100%; height: 50px; }
.days p { margin: 4px 0 24px; font-size: 13px; }
.days .day { fill: var(--hover); }
.days .done { fill: var(--link); }
.days .failed { fill: var(--bad); }
.empty { padding: 28px 0; color: var(--quiet); }

button, input {
    padding: 3px 10px;
    border: 1px solid var(--line);
    border-radius: 5px;
    background: transparent;
    color: inherit;
    font: inherit;
    font-size: 13px;
}
button { cursor: pointer; white-space: nowrap; }
button:hover { border-color: var(--faint); }
button[aria-busy] { opacity: .5; cursor: default; }
button[aria-pressed="true"] { border-color: var(--quiet); }
button.bad { border-color: currentColor; }
input { flex: 0 1 22em; min-width: 8em; }
input::placeholder { color: var(--quiet); }
.row { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin: 16px 0 0; }
.row .space { flex: 1; }
.row .row { margin: 0; }

.tabs { display: flex; flex-wrap: wrap; gap: 4px 20px; border-bottom: 1px solid var(--line); }
.tabs a { padding: 6px 0; color: var(--quiet); border-bottom: 2px solid transparent; }
.tabs a[aria-current] { color: var(--ink); border-color: currentColor; }

dialog {
    width: min(720px, calc(100vw - 32px));
    max-height: calc(100vh - 48px);
    padding: 20px 24px 24px;
    border: 1px solid var(--line);
    border-radius: 8px;
    background: var(--paper);
    color: var(--ink);
    overflow: auto;
}
dialog::backdrop { background: rgb(0 0 0 / 35%); }
dialog p:empty { display: none; }
dialog h2 { margin: 0; font-size: 16px; font-weight: 650; overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 6px 20px; margin: 16px 0; }
.facts dt { color: var(--quiet); }
.facts dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
pre {
    max-height: 340px;
    margin: 8px 0 0;
    padding: 10px 12px;
    border: 1px solid var(--line);
    border-radius: 5px;
    font: 13px/1.5 ui-monospace, monospace;
    overflow: auto;
    white-space: pre-wrap;
    overflow-wrap: anywhere;
}

@media (max-width: 860px) {
    .spark, .rarer { display: none; }
}
@media (max-width: 560px) {
    body { padding: 0 16px 40px; }
    header { gap: 12px; }
    #redis { display: none; }
    .numbers { grid-template-columns: repeat(6, 1fr); row-gap: 18px; margin: 20px 0; }
    .numbers > div { grid-column: span 2; padding: 0 0 0 12px; }
    .numbers > div:nth-child(4) { padding-left: 0; border-left: 0; }
    .numbers dd { font-size: 21px; }
    th, td { padding-left: 8px; }
    .rare { display: none; }
    .step { width: 80px; }
    .name { width: auto; }
    .messages th:first-child { width: 68%; }
    .count { width: 62px; }
    .name > span { flex-wrap: wrap; }
    .tag { margin-left: 0; margin-right: 8px; }
    .facts { grid-template-columns: 1fr; gap: 0; }
    .facts dd { margin-bottom: 8px; }
    dialog { padding: 16px; }
}
)css";

} // namespace orizuru::detail::web
