// Our own rules, as a plugin of the linter.
import { functionLength } from './function-length.js'
import { imports } from './imports.js'
import { innerNames } from './inner-names.js'
import { namedArguments } from './named-arguments.js'

// The linter takes a plugin by its default export.
export default {
  meta: { name: 'berth' },
  rules: { ...imports.rules, 'function-length': functionLength, 'inner-names': innerNames, 'named-arguments': namedArguments }
}
