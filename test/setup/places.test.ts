// Where something failed is told by the source, though tests run as they are compiled.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { withSourcePlaces } from '../../setup/test/places.ts'

const compiled = fileURLToPath(import.meta.url)
const source = 'test/setup/places.test.ts'
const lineOf = (file: string, text: string): number => readFileSync(file, 'utf8').split('\n').findIndex((line) => line.includes(text)) + 1
const MARK = '// the line that is looked for'
const failing = (): Error => new Error('here') // the line that is looked for

t.test('a place in a stack becomes one in the source, whichever way the file is named', async (t) => {
  const [from, to] = [lineOf(compiled, "new Error('here')"), lineOf(`${packageRoot}/${source}`, `new Error('here') ${MARK}`)]
  t.not(from, to)
  for (const file of [compiled, `file://${compiled}`, relative(packageRoot, compiled)]) {
    t.match(withSourcePlaces(`Error: here\n    at failing (${file}:${from}:30)`), new RegExp(`^Error: here\\n {4}at failing \\(${source}:${to}:\\d+\\)$`), file)
    t.match(withSourcePlaces(JSON.stringify({ fileName: file.replace('file://', ''), lineNumber: from, columnNumber: 30, isToplevel: true })), `{"fileName":"${source}","lineNumber":${to},`)
  }
  t.match(withSourcePlaces(failing().stack ?? ''), `${source}:${to}:`)
})

t.test('what is of a package, or not there, stays as it is', async (t) => {
  const text = 'at x (/nowhere/dist/a.js:1:2) node_modules/fastify/lib/route.js:3:4 http://127.0.0.1:80/x.js 10:20:30'
  t.equal(withSourcePlaces(text), text)
})
