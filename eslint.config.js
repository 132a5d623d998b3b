// The lint rules: the neostandard style, and the habits of this project that a machine can check. Those of setup/lint/oxlint.json, which need types or which oxlint has, too, are oxlint's: native, it
// takes a tenth of the time.
import { readFileSync } from 'node:fs'
import neostandard from 'neostandard'
import * as regexp from 'eslint-plugin-regexp'
import { functionLength } from './setup/lint/function-length.js'
import { imports } from './setup/lint/imports.js'
import { innerNames } from './setup/lint/inner-names.js'
import { namedArguments } from './setup/lint/named-arguments.js'

const product = ['core/**/*.ts', 'plugins/**/*.ts', 'plugins/**/*.tsx', 'proxy/**/*.ts', 'cli/**/*.ts']
const everything = [...product, 'setup/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts']

// Where the API's names, those of columns, or those of other programs are spoken.
const edges = [
  ...['schemas', 'view', 'routes', 'requests', 'validate', 'repository', 'rows'].map((name) => `plugins/**/${name}.ts`),
  ...['api', 'migrations', 'sockets', 'validate'].map((name) => `plugins/**/${name}/**`),
  // another program of the API; the languages of VMMs, of OCI images and of ip; the form of a build; events as they are sent
  'plugins/console/**', 'plugins/hypervisor-*/**', 'plugins/builds/{builder-image,upload}/**', 'plugins/images/layers/history.ts', 'plugins/networking/{links,namespace,ruleset}.ts', 'plugins/events/stream/**', 'plugins/webhooks/delivery/**',
  // answers, and what is checked of a request, beside what they are about
  'plugins/instances/{auto-standby/status,egress/contract,egress/egress-log,model/stored-state,volumes/spec}.ts', 'plugins/resources/overview.ts', 'plugins/egress/policy/try.ts', 'plugins/ingress/rules/check.ts',
  // stored as the request had it
  'plugins/instances/{compression/compression-for,model/record}.ts', 'plugins/ports/place.ts'
]

/** The folders that oxlint looks at. */
const native = ['bench', 'cli', 'core', 'plugins', 'proxy', 'setup', 'test'].map((folder) => `${folder}/**`)
const nativeRules = Object.keys(JSON.parse(readFileSync(new URL('setup/lint/oxlint.json', import.meta.url), 'utf8')).rules).map((name) => name.replace(/^typescript\//, ''))

const syntax = [
  { selector: 'CallExpression[callee.object.name="AbortSignal"][callee.property.name="any"] CallExpression[callee.object.name="AbortSignal"][callee.property.name="timeout"]', message: 'Such a timeout may never come: core/jobs/deadline.' },
  { selector: 'ExportDefaultDeclaration', message: 'Export by name: one thing, one name everywhere.' },
  { selector: 'TSAsExpression > TSAsExpression', message: 'A double cast silences the compiler: narrow the value instead.' },
  { selector: 'TSNonNullExpression', message: 'Say what happens when it is missing instead of asserting that it is there.' },
  { selector: 'MemberExpression[property.name="pathname"] > NewExpression[callee.name="URL"][arguments.1.object.type="MetaProperty"]', message: 'The path of a file is fileURLToPath(url): in pathname a blank is %20.' }
]

export default [
  ...neostandard({ ts: true, ignores: ['dist/**', 'dist-*/**', '.cache/**', '.quickstart/**', '.tap/**'] }),
  // oxlint reads the same comments.
  { files: native, linterOptions: { reportUnusedDisableDirectives: 'off' }, rules: Object.fromEntries(nativeRules.flatMap((name) => [[name, 'off'], [`@typescript-eslint/${name}`, 'off']])) },
  {
    files: everything,
    // Nothing here reads comments from the compiler's tree: a twentieth of the processor time.
    languageOptions: { parserOptions: { jsDocParsingMode: 'none' } },
    plugins: { berth: { rules: { ...imports.rules, 'function-length': functionLength, 'inner-names': innerNames, 'named-arguments': namedArguments } } },
    rules: {
      'berth/boundaries': 'error',
      'berth/no-cycle': 'error',
      // A type and a constant of one name are one thing to their users; the compiler reports the real clashes.
      '@typescript-eslint/no-redeclare': 'off',
      // So it does with both of these (`noUnusedLocals`), in no time; here they are a tenth of all.
      '@typescript-eslint/no-unused-vars': 'off',
      '@typescript-eslint/no-use-before-define': 'off',
      // Tables of small objects read best as rows.
      '@stylistic/object-property-newline': 'off',
      '@stylistic/multiline-ternary': 'off',
      // The API itself has texts with ${value} in them.
      'no-template-curly-in-string': 'off',
      'no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx'] }],
      'no-restricted-syntax': ['error', ...syntax],
      'max-lines': ['error', 350]
    }
  },
  {
    files: [...product, 'setup/**/*.ts', 'bench/**/*.ts'],
    rules: {
      'berth/function-length': ['error', 60]
    }
  },
  {
    files: [...product, 'setup/**/*.ts'],
    plugins: { regexp },
    rules: {
      // What comes from outside may be made to be slow.
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': 'error'
    }
  },
  {
    // Rules of this layout and its fixes undo one another where a condition holds elements of several lines.
    files: ['plugins/**/*.tsx'],
    rules: { '@stylistic/jsx-indent': 'off', '@stylistic/jsx-closing-tag-location': 'off' }
  },
  {
    files: product,
    rules: {
      // Beyond that, an object with names.
      'max-params': ['error', 5],
      'berth/named-arguments': 'error'
    }
  },
  {
    files: ['plugins/**/*.ts'],
    ignores: edges,
    rules: { 'berth/inner-names': 'error' }
  },
  {
    files: product,
    ignores: ['core/config/**', 'cli/environment.ts'],
    rules: {
      'no-restricted-properties': ['error', { object: 'process', property: 'env', message: 'The environment is read in core/config, in one table.' }]
    }
  }
]
