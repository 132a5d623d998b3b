// Rules of the lint on who may import whom. They are the architecture in executable form: see README.md, "How it fits together".
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

// What the command may know of the server without loading it, and how both write sizes, times and texts of strangers.
const KNOWN_TO_CLI = [join('core', 'cli', 'catalogue.ts'), join('core', 'clean-text.ts'), join('core', 'compare-versions.ts'), join('core', 'errors', 'system-code.ts'), join('core', 'main.ts'), join('core', 'units.ts'), join('core', 'version.ts')].map((name) => join(root, name))

// What is checked of a host is the same, whether the command looks at its own or a server at its.
const HOST_CHECKS = join(root, 'core', 'library', 'host-checks') + sep

// The rooms of the proxy, lowest first.
const PROXY_ROOMS = ['contract', 'config', 'log', 'audit', 'gate', 'tls', 'upstream', 'vms', 'http', 'workers', 'parent']
const SHARED_BY_PROXY = join(root, 'proxy', 'contract') + sep

/** The area that a file belongs to, for a plugin which one, and for core whether it is what plugins share. */
function placeOf (file) {
  const [area, part] = relative(root, file).split(sep)
  return { area, plugin: area === 'plugins' ? part : undefined, isLibrary: area === 'core' && part === 'library' }
}

/** The room of a file of the proxy; a file in none of its rooms is above them all. */
function heightOf (file) {
  const room = PROXY_ROOMS.indexOf(relative(root, file).split(sep)[1])
  return room < 0 ? PROXY_ROOMS.length : room
}

/** One sentence on why `from` may not import `to`; empty when it may. */
function objection (from, to, typeOnly) {
  const a = placeOf(from)
  const b = placeOf(to)
  if (a.area === 'test' || a.area === 'bench') return undefined
  if (b.area === 'test' || b.area === 'bench') return 'only tests and benchmarks import from test/ and bench/'
  // The messages between server and proxy, and the rules that both apply: the side that accepts a policy and the side that enforces it must agree.
  if ((a.isLibrary || a.area === 'plugins') && to.startsWith(SHARED_BY_PROXY)) return undefined
  if (from.startsWith(SHARED_BY_PROXY) && !to.startsWith(SHARED_BY_PROXY)) return 'proxy/contract imports nothing of the proxy: the server has it, too'
  if (a.area === 'core' && b.area !== 'core') return 'core imports nothing but core: it knows no plugin'
  if (a.area === 'core' && b.isLibrary && !a.isLibrary) return 'core/library is for plugins: the kernel does without'
  if (a.area === 'setup' && !['setup', 'core'].includes(b.area)) return 'setup/ talks to the product from outside, over its API'
  if (a.area === 'proxy' && b.area !== 'proxy') return 'the proxy is a program of its own: it imports neither core nor plugins'
  if (a.area === 'proxy' && heightOf(from) < heightOf(to)) return `rooms of the proxy import downwards only: ${PROXY_ROOMS.join(', ')}`
  if (from.startsWith(HOST_CHECKS) && !to.startsWith(HOST_CHECKS) && !KNOWN_TO_CLI.includes(to)) return 'the command loads the checks of a host, and must load nothing of the server with them'
  if (a.area === 'cli') return b.area === 'cli' || KNOWN_TO_CLI.includes(to) || to.startsWith(HOST_CHECKS) ? undefined : 'the command talks to the server over its API, and loads nothing of it'
  if (b.area === 'cli') return 'only the command itself imports from cli/'
  if (a.area !== 'plugins') return undefined
  if (b.area === 'core' || a.plugin === b.plugin) return undefined
  if (b.area === 'proxy') return 'of the proxy, a plugin imports only what is in proxy/contract/'
  if (b.area !== 'plugins') return `a plugin does not import from ${b.area}/`
  return typeOnly && to.endsWith(`${sep}contract.ts`) ? undefined : 'of another plugin, import only types, and only from its contract.ts'
}

const importPattern = /^\s*(?:import|export)\s+([^'";]*?)\s*from\s+'(\.[^']+)'|^\s*import\s+'(\.[^']+)'/gm
const readByFile = new Map()

/** The files that `file` imports, with what is between `import` and `from`. */
function readImports (file) {
  const known = readByFile.get(file)
  if (known !== undefined) return known
  const found = []
  const text = readFileSync(file, 'utf8')
  for (const [, clause = '', from, alone] of text.matchAll(importPattern)) found.push({ target: resolve(dirname(file), from ?? alone), clause })
  // Of a file that is imported when its time comes, everything may be used.
  const atRuntime = [...text.matchAll(/\bimport\(\s*'(\.[^']+)'\s*\)/g)].map(([, path]) => resolve(dirname(file), path))
  const read = { found, atRuntime }
  readByFile.set(file, read)
  return read
}

const importsByFile = new Map()

/** The files that `file` imports. Imports of types count, too: two files that know each other's types are read, moved and deleted together. */
function importsOf (file) {
  const known = importsByFile.get(file)
  if (known !== undefined) return known
  const found = readImports(file).found.map(({ target }) => target).filter((target) => target.endsWith('.ts') && existsSync(target))
  importsByFile.set(file, found)
  return found
}

const reachedByFile = new Map()

/** All files that a file imports, directly or through others. */
function reachedFrom (file) {
  const known = reachedByFile.get(file)
  if (known !== undefined) return known
  const reached = new Set()
  const open = [file]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const target of importsOf(next)) {
      if (reached.has(target)) continue
      reached.add(target)
      open.push(target)
    }
  }
  reachedByFile.set(file, reached)
  return reached
}

/** A path of imports that leads from `target` back to `start`. */
function pathBack (start, target) {
  const seen = new Set()
  const walk = (file, path) => {
    if (file === start) return path
    if (seen.has(file)) return undefined
    seen.add(file)
    for (const next of importsOf(file)) {
      const found = walk(next, [...path, next])
      if (found !== undefined) return found
    }
    return undefined
  }
  return walk(target, [target])
}

/** Calls `visit` for each import or export of a relative path in a file. */
function onRelativeImports (context, visit) {
  const check = (node, typeOnly) => {
    const source = node.source?.value
    if (typeof source === 'string' && source.startsWith('.')) visit(node.source, resolve(dirname(context.filename), source), typeOnly)
  }
  return {
    ImportDeclaration: (node) => check(node, node.importKind === 'type'),
    ExportNamedDeclaration: (node) => check(node, node.exportKind === 'type'),
    ExportAllDeclaration: (node) => check(node, node.exportKind === 'type'),
    ImportExpression: (node) => check(node, false)
  }
}

const boundaries = {
  meta: { type: 'problem', schema: [] },
  create: (context) => onRelativeImports(context, (node, target, typeOnly) => {
    const message = objection(context.filename, target, typeOnly)
    if (message !== undefined) context.report({ node, message })
  })
}

const noCycle = {
  meta: { type: 'problem', schema: [] },
  create: (context) => onRelativeImports(context, (node, target) => {
    if (!target.endsWith('.ts') || !existsSync(target) || !reachedFrom(target).has(context.filename)) return
    const path = pathBack(context.filename, target) ?? []
    context.report({ node, message: `import cycle: ${[context.filename, ...path].map((file) => relative(root, file)).join(' -> ')}` })
  })
}

const IMPORTERS = ['bench', 'cli', 'core', 'examples', 'plugins', 'proxy', 'setup', 'test']
const EVERYTHING = '*'
let usedByFile

/** What other files import of each, tests included. */
function usedNames () {
  if (usedByFile !== undefined) return usedByFile
  usedByFile = new Map()
  const use = (file, name) => {
    if (!usedByFile.has(file)) usedByFile.set(file, new Set())
    usedByFile.get(file).add(name)
  }
  for (const folder of IMPORTERS.map((name) => join(root, name)).filter((each) => existsSync(each))) {
    for (const name of readdirSync(folder, { recursive: true })) {
      if (!/\.(?:tsx?|js)$/.test(name) || name.includes('node_modules')) continue
      const { found, atRuntime } = readImports(join(folder, name))
      for (const target of atRuntime) use(target, EVERYTHING)
      for (const { target, clause } of found) {
        if (clause.includes('*')) use(target, EVERYTHING)
        for (const part of (/\{([^}]*)\}/.exec(clause)?.[1] ?? '').split(',')) use(target, part.trim().replace(/^type\s+/, '').split(/\s+as\s+/)[0])
      }
    }
  }
  return usedByFile
}

/** The names of the values that an export has. */
function exportedValues ({ declaration, exportKind, specifiers, source }) {
  if (source != null || exportKind === 'type') return []
  switch (declaration?.type) {
    case undefined: return specifiers.filter((each) => each.exportKind !== 'type').map(({ exported }) => exported.name)
    case 'ClassDeclaration':
    case 'FunctionDeclaration': return [declaration.id.name]
    case 'VariableDeclaration': return declaration.declarations.flatMap(({ id }) => id.type === 'Identifier' ? [id.name] : [])
    default: return []
  }
}

/** An export says that others use it, and nobody changes or removes it without looking for them. */
const usedExports = {
  meta: { type: 'problem', schema: [] },
  create: (context) => ({
    ExportNamedDeclaration (node) {
      const used = usedNames().get(context.filename)
      if (used?.has(EVERYTHING) === true) return
      for (const name of exportedValues(node)) if (used?.has(name) !== true) context.report({ node, message: `no other file imports ${name}` })
    }
  })
}

export const imports = { rules: { boundaries, 'no-cycle': noCycle, 'used-exports': usedExports } }
