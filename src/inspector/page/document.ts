/** The page before its first message. Its scripts fill what has an id; nothing here is a template for data. */

/** Drawn in both colour schemes. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#2563eb"/><path d="M4 4v8M8 4v8M12 4v8" stroke="#fff" stroke-width="2" stroke-linecap="round"/></svg>`

/** The whole document. Addresses are relative, so that it works below a path of a reverse proxy. */
export const DOCUMENT = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Checkpoints</title>
<link rel="icon" href="page/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="page/style.css">
<script type="module" src="page/main.js"></script>
</head>
<body>
<a class="skip" href="#settled-title">Skip to the settled barriers</a>
<header>
  <div>
    <h1>Checkpoints</h1>
    <p class="quiet">Where agents wait until their session log is durable</p>
  </div>
  <p class="about quiet" id="about"></p>
  <p class="connection" id="connection" role="status">connecting</p>
  <button type="button" id="pause" aria-pressed="false">Pause</button>
</header>
<main>
<noscript><p class="verdict bad">This page needs JavaScript. The same data is at <a href="api/state">api/state</a>.</p></noscript>

<section class="verdict" id="verdict" aria-labelledby="verdict-headline">
  <h2 id="verdict-headline" aria-live="polite">Connecting to the agent process</h2>
  <p id="verdict-detail"></p>
</section>

<section aria-label="Key figures">
  <dl class="tiles" id="tiles"></dl>
</section>

<div class="pair">
<section aria-labelledby="open-title">
  <h2 id="open-title">Open now</h2>
  <div class="scroll" tabindex="0" role="region" aria-labelledby="open-title">
  <table id="open">
    <caption>Barriers that have not settled, oldest first. Stuck after <span id="stuck-after">5 s</span>.</caption>
    <thead><tr>
      <th scope="col">Age</th><th scope="col">Boundary</th><th scope="col">What is held</th><th scope="col">Session</th>
      <th scope="col" class="number">Events not durable</th><th scope="col">Strategy</th>
    </tr></thead>
    <tbody id="open-rows"></tbody>
  </table>
  </div>
</section>
<section aria-labelledby="failures-title">
  <h2 id="failures-title">Last failure of each class</h2>
  <div class="scroll" tabindex="0" role="region" aria-labelledby="failures-title">
  <table id="failures"><caption>Rejected or timed out barriers, and background writes that failed</caption><thead></thead><tbody></tbody></table>
  </div>
</section>
</div>

<section aria-labelledby="times-title">
  <div class="bar">
    <h2 id="times-title">How long</h2>
    <fieldset class="choice">
      <legend class="hidden">Which time</legend>
      <label><input type="radio" name="time" value="waits" checked><span>agents waited</span></label>
      <label><input type="radio" name="time" value="flushes"><span>writes took</span></label>
    </fieldset>
  </div>
  <div class="histograms" id="histograms"></div>
</section>

<section aria-labelledby="settled-title">
  <div class="bar">
    <h2 id="settled-title" tabindex="-1">Settled</h2>
    <fieldset class="choice">
      <legend class="hidden">Which barriers</legend>
      <label><input type="radio" name="list" value="last" checked><span>last</span></label>
      <label><input type="radio" name="list" value="slowest"><span>slowest</span></label>
    </fieldset>
    <label>Boundary <select id="filter-boundary"><option value="">all</option><option>step</option><option>request</option><option>tool</option><option>turn</option></select></label>
    <label>Outcome <select id="filter-outcome"><option value="">all</option><option value="trouble">trouble only</option><option>dispatched</option><option>rejected</option><option>aborted</option><option>timeout</option></select></label>
    <label>Find <input type="search" id="filter-text" placeholder="tool, session, call" autocomplete="off" spellcheck="false"></label>
    <p class="quiet" id="settled-count" role="status"></p>
  </div>
  <div class="scroll" tabindex="0" role="region" aria-labelledby="settled-title">
  <table id="settled">
    <caption>Outcome: what became of the request, call or step. Write: what became of the log.</caption>
    <thead><tr id="settled-head"></tr></thead>
    <tbody id="settled-rows"></tbody>
  </table>
  </div>
</section>

<div class="columns">
<section aria-labelledby="outcomes-title">
  <h2 id="outcomes-title">Outcomes</h2>
  <div class="scroll" tabindex="0" role="region" aria-labelledby="outcomes-title">
  <table id="outcomes"><caption>Settled barriers by boundary</caption><thead></thead><tbody></tbody></table>
  </div>
</section>
<section aria-labelledby="strategies-title">
  <h2 id="strategies-title">Strategy and decisions</h2>
  <div class="scroll" tabindex="0" role="region" aria-labelledby="strategies-title">
  <table id="strategies"><caption id="strategies-caption">What was done at each barrier, after the policy's own rules</caption><thead></thead><tbody></tbody></table>
  </div>
</section>
<section aria-labelledby="recovered-title">
  <h2 id="recovered-title">Recovered calls</h2>
  <div class="scroll" tabindex="0" role="region" aria-labelledby="recovered-title">
  <table id="recovered"><caption>Calls without a result that crash recovery answered when a session was resumed</caption><thead></thead><tbody></tbody></table>
  </div>
</section>
</div>
</main>
<footer class="quiet">
  <p id="bounds"></p>
  <p>Shows ids and names of sessions, calls, tools and models; never prompts, arguments, results or error messages. For scripts: <a href="api/state">api/state</a>.</p>
</footer>
</body>
</html>
`
