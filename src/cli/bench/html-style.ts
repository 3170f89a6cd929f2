/** Style of the HTML report; the browser's preference decides between light and dark. */

/** The sheet. Colours of the strategies are told apart by people who do not see red and green, in both schemes. */
export const STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --dim: #59636e; --line: #d1d9e0; --good: #0a6e3d; --bad: #a33200;
  --s0: #8a939c; --s1: #0969da; --s2: #0f8a6c; --s3: #bf6a02; --s4: #8250df; }
@media (prefers-color-scheme: dark) { :root { --back: #10151b; --text: #e4e9ee; --dim: #98a3ae; --line: #333c46; --good: #4cc38a; --bad: #ff9566;
  --s0: #97a1ab; --s1: #5aa7ff; --s2: #3cc7a1; --s3: #f0a64b; --s4: #b392f0; } }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
h2 span { font-size: .85rem; font-weight: normal; margin-left: .6rem; color: var(--dim); }
h2 .noisy { color: var(--bad); font-weight: 600; }
.lead { max-width: 44rem; color: var(--dim); margin: 0 0 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
p.advice { margin: .5rem 0 0; } p.more-of { margin: 0 0 0 1.5rem; color: var(--dim); font-variant-numeric: tabular-nums; }
.chart { height: 17rem; position: relative; }
summary { cursor: pointer; color: var(--dim); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { text-align: right; padding: .2rem .8rem; border-bottom: 1px solid var(--line); font-weight: normal; }
th:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--dim); }
.less td:last-child { color: var(--good); font-weight: 600; } .more td:last-child { color: var(--bad); font-weight: 600; }
.unsure td:last-child, .reference td:last-child { color: var(--dim); }
`
