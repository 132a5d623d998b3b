// The pages as the build makes them and as the server sends them.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { packageRoot } from '../../../core/package-root.ts'
import { startConsole } from './app.ts'

const folder = join(packageRoot, 'dist/plugins/console/web')
const MOST_BYTES = 250 * 1024

await t.test('the first page is small, and asks nobody else for anything', async (t) => {
  const index = await readFile(join(folder, 'index.html'), 'utf8')
  const files = [...index.matchAll(/(?:src|href)="\/console\/([^"]+)"/g)].map(([, name = '']) => name)
  t.equal(files.length, 2)
  const sizes = await Promise.all(['index.html', ...files].map(async (name) => gzipSync(await readFile(join(folder, name))).length))
  const sum = sizes.reduce((a, b) => a + b)
  t.ok(sum < MOST_BYTES, `${sum} bytes compressed`)
  t.notOk(files.some((name) => name.includes('terminal')), 'the terminal comes when it is opened')
  t.notMatch(index, /<script(?![^>]* src=)|<style| style=| on\w+=|https?:/, 'nothing inline, nothing from elsewhere')
})

await t.test('files are sent under a strict policy, and kept for good where their names have their hash', async (t) => {
  const { url } = await startConsole(t)
  for (const name of await readdir(folder)) {
    const { status, headers } = await fetch(`${url}/console/${name}`)
    t.equal(status, 200, name)
    t.equal(headers.get('cache-control'), name === 'index.html' ? 'no-cache' : 'public, max-age=31536000, immutable', name)
    t.equal(headers.get('x-content-type-options'), 'nosniff')
  }
  const answer = await fetch(`${url}/console/`)
  const policy = answer.headers.get('content-security-policy') ?? ''
  t.match(answer.headers.get('content-type'), 'text/html')
  t.equal(answer.headers.get('referrer-policy'), 'no-referrer')
  t.notMatch(policy, /unsafe|\*|https?:/)
  for (const part of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]) t.ok(policy.split('; ').includes(part), part)
  t.match(await fetch(`${url}/console`, { redirect: 'manual' }).then(({ status, headers }) => ({ status, to: headers.get('location') })), { status: 308, to: '/console/' })
  for (const path of ['../index.js', '..%2findex.js', 'none.js', '%2e%2e/manifest.js']) t.equal((await fetch(`${url}/console/${path}`)).status, 404, path)
})
