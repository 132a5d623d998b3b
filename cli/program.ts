// The commands of the catalogue as a commander program.
import { Argument, Command, Option } from 'commander'
import { SERVER_COMMANDS } from '../core/cli/catalogue.ts'
import { version } from '../core/version.ts'
import { GROUPS, SECTIONS } from './catalogue/all.ts'
import { COMMON_OPTIONS } from './catalogue/common.ts'
import { VARIABLES } from './environment.ts'
import { EXIT_MEANINGS } from './exit-codes.ts'
import { Input } from './input.ts'
import { descriptionOf, type CommandSpec, type OptionSpec, type Section } from './spec.ts'

/** @param call runs a command; the caller keeps its exit code */
export function createProgram (call: (spec: CommandSpec, input: Input) => Promise<void>): Command {
  const program = new Command('berth')
    .description('Runs container images as virtual machines.')
    .usage('COMMAND [arguments]')
    .version(version, '-V, --version', 'the version of this command')
    .helpOption('-h, --help', 'help for a command')
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .exitOverride()
    .configureHelp({ showGlobalOptions: false })
  for (const option of COMMON_OPTIONS) program.addOption(optionOf(option))
  for (const section of SECTIONS) for (const spec of section.commands) addCommand(program, spec, section, call)
  for (const { name, summary, usage } of SERVER_COMMANDS) {
    // `restore` is listed among the commands for instances; see isServerCommand.
    if (name !== 'restore') program.command(name).summary(summary).description(summary).usage(usage).helpGroup('On the server\'s host').allowUnknownOption().allowExcessArguments()
  }
  program.addHelpText('after', () => `\nEnvironment:\n${rows(VARIABLES, 16)}\n\nExit codes:\n${rows(EXIT_MEANINGS, 10)}\n\n"berth COMMAND --help" shows options and examples.`)
  return program
}

function addCommand (program: Command, spec: CommandSpec, section: Section, call: (spec: CommandSpec, input: Input) => Promise<void>): void {
  const words = spec.name.split(' ')
  const name = words.pop() ?? ''
  const parent = words.reduce((above, word, depth) => groupOf(above, word, words.slice(0, depth + 1).join(' '), section.title), program)
  const command = parent.command(name).summary(spec.summary).description(descriptionOf(spec)).exitOverride()
  if (parent === program) command.helpGroup(section.title)
  for (const text of spec.args?.split(/ (?=[<[])/) ?? []) command.addArgument(new Argument(text))
  for (const option of spec.options ?? []) command.addOption(optionOf(option))
  for (const option of COMMON_OPTIONS) command.addOption(optionOf(option).hideHelp())
  if (spec.passThrough === true) command.passThroughOptions()
  command.addHelpText('after', `\nExamples:\n${spec.examples.map((line) => `  ${line}`).join('\n')}\n\n"berth --help" shows the options that all commands have.`)
  command.action(async () => await call(spec, new Input(command.processedArgs, optionsOf(command))))
}

/** Those of the command and of the program. What was written after the command counts, and not a default of the program's. */
function optionsOf (command: Command): Record<string, unknown> {
  const given = Object.entries(command.opts()).filter(([name]) => command.getOptionValueSource(name) === 'cli')
  return { ...command.optsWithGlobals(), ...Object.fromEntries(given) }
}

function groupOf (above: Command, word: string, path: string, title: string): Command {
  const known = above.commands.find((command) => command.name() === word)
  if (known !== undefined) return known
  const group = above.command(word).summary(GROUPS[path] ?? '').description(sentence(GROUPS[path] ?? '')).exitOverride()
  if (above.parent === null) group.helpGroup(title)
  return group
}

function optionOf ({ flags, description, many, values }: OptionSpec): Option {
  const option = new Option(flags, description)
  if (values !== undefined) option.choices([...values])
  if (many === true) option.argParser((value: string, before: unknown) => [...Array.isArray(before) ? before as string[] : [], value])
  return option
}

function rows (pairs: readonly (readonly [string, string])[], width: number): string {
  return pairs.map(([name, meaning]) => `  ${name.padEnd(width)}${meaning}`).join('\n')
}

function sentence (text: string): string {
  return text === '' ? '' : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
