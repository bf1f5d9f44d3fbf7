// Runs the public test suite of HTTP caches against a proxy and writes one verdict per test.
//
// usage: node run.mjs --suite DIR --client DIR --base URL [--proxy URL] [--out FILE] [--id TEST]
//
// --suite  a release or checkout of the suite
// --client the package `undici`, unpacked
// --base   where the tests' requests go: the reverse proxy, or the origin if --proxy is given
// --proxy  a forward proxy that carries them
// --id     runs one test only and shows its messages
//
// `cargo xtask conformance` sees to all of it.

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
    id: { type: 'string' }
  }
})

// A test that waits longer than this has failed.
const PATIENCE_MS = 10_000
// As many at once as the suite itself runs.
const AT_ONCE = 25

const suite = resolve(args.suite)
const undici = await client(args)
const tests = await definitions(suite)
const results = await run(suite, tests)
report(tests, results)
process.exit(0)

// The HTTP client of all requests; goes by way of the forward proxy if there is one.
async function client ({ client, proxy }) {
  const undici = (await import(pathToFileURL(`${resolve(client)}/index.js`).href)).default
  globalThis.wayOfRequests = { Agent: throughProxy(undici.Agent, proxy) }
  // The suite makes agents of its own for some tests: those take the same way.
  const stand = 'export const Agent = globalThis.wayOfRequests.Agent'
  const hook = `export const resolve = (name, context, next) => name === 'undici'
    ? { url: 'data:text/javascript,${encodeURIComponent(stand)}', shortCircuit: true }
    : next(name, context)`
  register('data:text/javascript,' + encodeURIComponent(hook))
  undici.setGlobalDispatcher(new globalThis.wayOfRequests.Agent())
  return undici
}

// An agent that sends every request to `proxy` with its whole URL as the target. (The client's
// own proxy agent makes tunnels, which no cache can look into.)
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

// All tests: of releases up to 0.4.5 one file has to be asked for by name.
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
  const chosen = args.id ? groups.map(only).filter(group => group.tests.length > 0) : groups
  globalThis.fetch = patient
  if (old) await runTests(chosen, patient, false, args.base, AT_ONCE)
  else await runTests(chosen, false, args.base, AT_ONCE)
  return getResults()
}

function only (group) {
  const tests = group.tests.filter(test => test.id === args.id)
  tests.forEach(test => { test.dump = true })
  return { ...group, tests }
}

// fetch that gives up after a while; a hanging test would stop the whole run. Without these two
// fields fetch itself would ask for `no-cache`; current versions of the suite send them always,
// older ones were written for a client that adds nothing.
async function patient (url, init = {}) {
  const headers = new undici.Headers(init.headers)
  if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'nothing-to-see-here')
  if (!headers.has('Pragma')) headers.set('Pragma', 'foo')
  const signal = init.signal ?? AbortSignal.timeout(PATIENCE_MS)
  return undici.fetch(url, { ...init, headers, signal })
}

// A test counts if it passed and all that it depends on count: what a failed set-up makes pass
// by chance proves nothing.
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
