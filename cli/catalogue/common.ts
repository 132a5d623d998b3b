// The options that every command has.
import type { OptionSpec } from '../spec.ts'

export const COMMON_OPTIONS: readonly OptionSpec[] = [
  { flags: '--url <url>', description: 'address of the server; else $BERTH_URL, else the chosen context, else this host' },
  { flags: '--context <name>', description: 'a server that was logged in to; else $BERTH_CONTEXT' },
  { flags: '--token-file <file>', description: 'file that holds the key; else $BERTH_TOKEN, or that of the context' },
  { flags: '--token <key>', description: 'the key itself, which everybody on this host can see; better one of the other ways' },
  { flags: '--ca <file>', description: 'PEM of the authority of the server\'s certificate; else $BERTH_CA' },
  { flags: '--json', description: 'print the answer as JSON' },
  { flags: '--format <format>', description: 'table, json, jsonl, yaml, or a template such as \'{{name}} {{state}}\'' },
  { flags: '-q, --quiet', description: 'print only names or ids, and no progress' },
  { flags: '-y, --yes', description: 'ask nothing; without a terminal nothing is asked either' },
  { flags: '--timeout <duration>', description: 'give up after 90s, 5m, …' },
  { flags: '--no-color', description: 'no colours; so does $NO_COLOR' }
]

/** Options of every command that creates something. */
export const TAGS: OptionSpec = { flags: '-l, --tag <KEY=VALUE>', description: 'a tag; may be repeated', many: true }
export const TAG_FILTER: OptionSpec = { flags: '-l, --tag <KEY=VALUE>', description: 'only those with this tag; may be repeated', many: true }

/** Options of every command that creates a copy. */
export const COPY_ENV: readonly OptionSpec[] = [
  { flags: '-e, --env <KEY=VALUE>', description: 'another value than the source has; KEY alone takes it from here; may be repeated', many: true },
  { flags: '--env-file <file>', description: 'lines of KEY=VALUE; may be repeated', many: true }
]
