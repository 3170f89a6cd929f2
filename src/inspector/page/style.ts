/** The page's style sheet. Colours follow the reader's system, in both schemes at WCAG AA contrast. */
export const STYLE = `:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --panel: #fff; --ink: #16191d; --quiet: #57606a; --line: #d9dee4; --accent: #1d4ed8;
  --bar: #3b82f6; --good: #116329; --good-ground: #e3f6e8; --watch: #7a4b00; --watch-ground: #fff3d6;
  --bad: #b3141d; --bad-ground: #ffe9e9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1216; --panel: #171b21; --ink: #e8ebef; --quiet: #9aa5b1; --line: #2d343d; --accent: #8ab4ff;
    --bar: #4f8ff7; --good: #6fdd8b; --good-ground: #12291a; --watch: #f2c14e; --watch-ground: #2e2408;
    --bad: #ff8f8f; --bad-ground: #3a1618;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1440px; padding: 16px 20px; background: var(--ground); color: var(--ink); font: 14px/1.4 system-ui, sans-serif; }
h1, h2, p, dl, dd, figure, fieldset { margin: 0; padding: 0; border: 0; }
h1 { font-size: 20px; }
h2 { font-size: 15px; }
a { color: var(--accent); }
.quiet, small, caption { color: var(--quiet); }
.hidden, .skip:not(:focus) { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
:focus-visible, .choice input:focus-visible + span { outline: 2px solid var(--accent); outline-offset: 2px; }

header { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 16px; margin-bottom: 12px; }
.about { margin-left: auto; }
.connection::before { content: ''; display: inline-block; width: 9px; height: 9px; margin-right: 6px; border-radius: 50%; background: var(--watch); }
.connection[data-status=live]::before { background: var(--good); }
.connection[data-status=lost]::before { background: var(--bad); }
button, select, input[type=search] { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 4px 10px; }
button[aria-pressed=true] { background: var(--accent); color: var(--panel); }

main { display: grid; gap: 14px; grid-template-columns: minmax(0, 1fr); }
main > section:not(.verdict):not([aria-label]), .columns > section, .pair > section { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
.verdict { border-radius: 10px; padding: 12px 16px; border-left: 6px solid; background: var(--panel); }
.verdict h2 { font-size: 18px; }
.verdict p { color: var(--ink); overflow-wrap: anywhere; }
.good { color: var(--good); background: var(--good-ground); }
.watch { color: var(--watch); background: var(--watch-ground); }
.bad { color: var(--bad); background: var(--bad-ground); }
.lost main > :not(.verdict) { opacity: 0.6; }
.paused main { outline: 3px dashed var(--watch); outline-offset: 6px; }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 8px; }
.tiles > div { display: flex; flex-direction: column-reverse; justify-content: flex-end; background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 8px 12px; }
.tiles > .bad { background: var(--bad-ground); border-color: var(--bad); }
.tiles dt { font-size: 12px; color: var(--quiet); }
.tiles dd { font-size: 20px; font-weight: 600; white-space: nowrap; }
.counting, .number, .tiles dd { font-variant-numeric: tabular-nums; }

.bar { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; margin-bottom: 8px; }
.bar > p { margin-left: auto; }
.choice { display: flex; }
.choice span { display: block; padding: 4px 12px; border: 1px solid var(--line); cursor: pointer; }
.choice label:first-of-type span { border-radius: 6px 0 0 6px; }
.choice label:last-of-type span { border-radius: 0 6px 6px 0; border-left: 0; }
.choice input { position: absolute; opacity: 0; pointer-events: none; }
.choice input:checked + span { background: var(--accent); color: var(--panel); border-color: var(--accent); }

.scroll { overflow: auto; max-height: 480px; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding-bottom: 4px; font-size: 12px; }
th, td { text-align: left; vertical-align: top; padding: 5px 10px 5px 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
thead th { border-top: 0; font-size: 12px; font-weight: 600; color: var(--quiet); white-space: nowrap; }
#settled thead th { position: sticky; top: 0; background: var(--panel); z-index: 1; }
tbody th { font-weight: 600; }
small { display: block; font-size: 12px; font-weight: 400; }
.number { text-align: right; white-space: nowrap; }
td:first-child, tbody th, .badge, .when { white-space: nowrap; }
tbody th small { white-space: normal; }
[data-tone=faint] { color: var(--quiet); }
[data-tone=bad] { color: var(--bad); font-weight: 600; }
tr.bad td:first-child { box-shadow: inset 4px 0 var(--bad); padding-left: 10px; font-weight: 600; }
tr.bad { color: inherit; }
tr.bad td:first-child, tr.bad td:first-child small { color: var(--bad); }
tr.trouble td:first-child { box-shadow: inset 3px 0 var(--bad); padding-left: 8px; }
.sort { border: 0; background: none; padding: 2px 0; color: inherit; font-weight: inherit; cursor: pointer; }
th[aria-sort] .sort::after { content: ' ▲'; }
th[aria-sort=descending] .sort::after { content: ' ▼'; }
.badge { border-radius: 4px; padding: 0 6px; background: var(--ground); }
.badge.rejected, .badge.timeout { background: var(--bad-ground); color: var(--bad); font-weight: 600; }
.badge.aborted, .badge.unconfirmed, .badge.pending { background: var(--watch-ground); color: var(--watch); }
.badge.durable { background: var(--good-ground); color: var(--good); }

.histograms { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); gap: 16px 24px; }
figure { display: flex; flex-direction: column; }
.plot { margin-top: auto; }
figcaption { display: flex; gap: 5px; }
.times { margin-left: auto; font-variant-numeric: tabular-nums; }
.facts { padding: 2px 0 6px; font-size: 12px; font-variant-numeric: tabular-nums; }
.plot { display: flex; align-items: flex-end; gap: 2px; height: 90px; border-bottom: 1px solid var(--quiet); }
.plot > div { flex: 1; background: var(--bar); border-radius: 2px 2px 0 0; }
.plot > .long { background: var(--bad); }
.axis { display: flex; gap: 2px; height: 16px; font-size: 11px; color: var(--quiet); }
.axis > .named { position: relative; padding-right: 4px; }
.axis > .named::after { content: ''; position: absolute; right: 0; height: 6px; border-right: 1px solid var(--quiet); }
.axis > span { flex: 1; width: 0; display: flex; justify-content: flex-end; white-space: nowrap; }

.pair { display: grid; gap: 14px; grid-template-columns: minmax(0, 1.7fr) minmax(0, 1fr); }
@media (max-width: 1000px) { .pair { grid-template-columns: minmax(0, 1fr); } }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 14px; }
footer { margin-top: 14px; font-size: 12px; }
@media (max-width: 640px) {
  body { padding: 10px; }
  .about { margin-left: 0; }
  #settled, #open { min-width: 760px; }
}
@media (forced-colors: active) { .plot > div { background: CanvasText; } .choice input:checked + span { background: Highlight; } }
`
