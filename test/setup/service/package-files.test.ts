// What of an npm package comes into an installation.
import t from 'tap'
import { isNeeded } from '../../../setup/service/package-files.ts'

const program = { withTypes: false, isCompiled: false }

t.test('programs and licences do, and what the package\'s authors work with does not', async (t) => {
  for (const path of ['package.json', 'lib/a.js', 'lib/test', 'lib/test/a.js', 'dist/doc', 'data.json', 'LICENSE', 'LICENSE.md', 'docs-of-it.js', 'NOTICE.txt']) t.ok(isNeeded(path, program), path)
  for (const path of ['test', 'docs', '.github', 'examples', 'README.md', 'lib/notes.md', 'lib/a.js.map', 'node_modules']) t.notOk(isNeeded(path, program), path)
})

t.test('types do where plugins are compiled', async (t) => {
  for (const path of ['index.d.ts', 'lib/a.d.mts', 'lib/b.d.cts']) {
    t.notOk(isNeeded(path, program), path)
    t.ok(isNeeded(path, { ...program, withTypes: true }), path)
  }
})

t.test('of a native module the compiled file does, without its sources', async (t) => {
  const compiled = { ...program, isCompiled: true }
  for (const path of ['build', 'build/Release', 'build/Release/a.node', 'lib/index.js']) t.ok(isNeeded(path, compiled), path)
  for (const path of ['src', 'deps', 'binding.gyp', 'build/Release/obj', 'build/Release/.deps', 'build/Makefile']) t.notOk(isNeeded(path, compiled), path)
  t.ok(isNeeded('src', program))
})
