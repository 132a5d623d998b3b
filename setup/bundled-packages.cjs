// Loads the bundle of packages that stands beside this file, compiled: V8 keeps what it has compiled in `packages.cache`, which this file writes when it is the program itself.
// Another version of Node or other flags of V8 refuse that, and compile the bundle again.
const { existsSync, readFileSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { Script, constants } = require('node:vm')

const bundle = join(__dirname, 'packages.cjs')
const cache = join(__dirname, 'packages.cache')

const script = new Script(`(function (exports, require, module, __filename, __dirname) {${readFileSync(bundle, 'latin1')}\n})`, {
  filename: bundle,
  importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  ...require.main !== module && existsSync(cache) ? { cachedData: readFileSync(cache) } : {}
})
const holder = { exports: {} }
script.runInThisContext()(holder.exports, require, holder, bundle, __dirname)

/** The exports of a package. Packages run when they are first asked for, as they do without a bundle. */
exports.part = (name) => holder.exports[name]()

if (require.main === module) {
  // With the functions that run as the packages are loaded.
  for (const part of Object.values(holder.exports)) part()
  writeFileSync(cache, script.createCachedData())
}
