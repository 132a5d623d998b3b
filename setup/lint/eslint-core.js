// Rules of ESLint itself that oxlint lacks, or, as of a loop's condition that nothing changes, has with false alarms: as a plugin of the linter.
import { builtinRules } from 'eslint/use-at-your-own-risk'

const NAMES = ['camelcase', 'no-dupe-args', 'no-octal', 'no-octal-escape', 'no-restricted-syntax', 'no-undef-init', 'no-unmodified-loop-condition']

// The linter takes a plugin by its default export.
export default {
  meta: { name: 'eslint-core' },
  rules: Object.fromEntries(NAMES.map((name) => [name, builtinRules.get(name)]))
}
