// Runs the public test suite of HTTP caches against a proxy and writes a verdict for each test.
//
// usage: node run.mjs --suite DIR --client DIR --base URL [--proxy URL] [--out FILE] [--id TEST]...
//
// --suite  a release or checkout of the suite
// --client the package `undici`, unpacked
// --base   URL of the tests' requests: the reverse proxy, or the origin if --proxy is given
// --proxy  the forward proxy that gets the requests
// --id     run only these tests and the tests on which they depend, and show their messages
//
// `cargo xtask conformance` starts this program with these options.

import { existsSync, writeFileSync } from 'node:fs'
import { register } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const { values: args } = parseArgs({
  options: {
    suite: { type: 'string' },
    client: { type: 'string' },
    base: { type: 'string' },
    proxy: { type: 'string' },
    out: { type: 'string' },
    id: { type: 'string', multiple: true }
  }
})

// A test that waits longer than this has failed.
const PATIENCE_MS = 10_000
// Number of tests that run at the same time, as in the suite's own runner.
const AT_ONCE = 25

const suite = resolve(args.suite)
const undici = await client(args)
const tests = await definitions(suite)
const results = await run(suite, tests)
report(tests, results)
process.exit(0)

// The HTTP client of all requests. If there is a forward proxy, the client sends its requests to this proxy.
async function client ({ client, proxy }) {
  const undici = (await import(pathToFileURL(`${resolve(client)}/index.js`).href)).default
  globalThis.wayOfRequests = { Agent: throughProxy(undici.Agent, proxy) }
  // For some tests, the suite creates its own agents. These agents must use the same proxy.
  const stand = 'export const Agent = globalThis.wayOfRequests.Agent'
  const hook = `export const resolve = (name, context, next) => name === 'undici'
    ? { url: 'data:text/javascript,${encodeURIComponent(stand)}', shortCircuit: true }
    : next(name, context)`
  register('data:text/javascript,' + encodeURIComponent(hook))
  undici.setGlobalDispatcher(new globalThis.wayOfRequests.Agent())
  return undici
}

// An agent that sends every request to `proxy`, with the complete URL as the target. (The client's own proxy
// agent uses tunnels, and a cache cannot read the contents of a tunnel.)
function throughProxy (Agent, proxy) {
  if (!proxy) return Agent
  return class extends Agent {
    dispatch (options, handler) {
      const origin = String(options.origin)
      const changed = { ...options, origin: proxy, path: origin + options.path }
      return super.dispatch(changed, handler)
    }
  }
}

// Returns all tests of the suite. Up to release 0.4.5, the index of the tests does not contain one file,
// which is loaded by its name.
async function definitions (suite) {
  const load = async file => (await import(pathToFileURL(`${suite}/tests/${file}`).href)).default
  const groups = await load('index.mjs')
  const legacy = 'surrogate-control.mjs'
  if (existsSync(`${suite}/tests/${legacy}`)) {
    const group = await load(legacy)
    if (!groups.includes(group)) groups.push(group)
  }
  return groups
}

async function run (suite, groups) {
  const old = existsSync(`${suite}/client/runner.mjs`)
  const folder = old ? `${suite}/client` : `${suite}/test-engine/client`
  const { runTests, getResults } = await import(pathToFileURL(`${folder}/runner.mjs`).href)
  const chosen = args.id ? only(groups, args.id) : groups
  globalThis.fetch = patient
  if (old) await runTests(chosen, patient, false, args.base, AT_ONCE)
  else await runTests(chosen, false, args.base, AT_ONCE)
  return getResults()
}

// Returns the tests with these names and the tests on which they depend.
function only (groups, names) {
  const all = new Map(groups.flatMap(group => group.tests).map(test => [test.id, test]))
  const chosen = new Set()
  const choose = name => {
    const test = all.get(name)
    if (!test || chosen.has(test)) return
    chosen.add(test)
    test.dump = true
    ;(test.depends_on ?? []).forEach(choose)
  }
  names.forEach(choose)
  return groups
    .map(group => ({ ...group, tests: group.tests.filter(test => chosen.has(test)) }))
    .filter(group => group.tests.length > 0)
}

// A `fetch` with a time limit, because one hanging test would stop the whole run. It sets two fields if the
// test does not set them. Without these fields, the client's own `fetch` would add `no-cache`.
// Current versions of the suite always send both fields, and older versions were written for a client that
// adds no fields.
async function patient (url, init = {}) {
  const headers = new undici.Headers(init.headers)
  if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'nothing-to-see-here')
  if (!headers.has('Pragma')) headers.set('Pragma', 'foo')
  const signal = init.signal ?? AbortSignal.timeout(PATIENCE_MS)
  return undici.fetch(url, { ...init, headers, signal })
}

// A test holds if it passed and all tests on which it depends hold. Otherwise a test could pass by chance,
// only because its preparation failed.
function report (groups, results) {
  const all = new Map(groups.flatMap(group => group.tests).map(test => [test.id, test]))
  const holds = id => results[id] === true && (all.get(id)?.depends_on ?? []).every(holds)
  const verdicts = {}
  for (const [id, result] of Object.entries(results)) {
    const test = all.get(id)
    verdicts[id] = { kind: test.kind ?? 'required', holds: holds(id), why: why(test, result, holds) }
  }
  const text = JSON.stringify(verdicts, null, 1)
  if (args.out) writeFileSync(args.out, text)
  else console.log(text)
}

function why (test, result, holds) {
  if (result !== true) return `${result[0]}: ${result[1]}`
  const missing = (test.depends_on ?? []).filter(id => !holds(id))
  return missing.length === 0 ? '' : `depends on ${missing.join(', ')}`
}
