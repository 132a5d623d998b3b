// The manual page berth.1, generated from the catalogue like the help.
import { SERVER_COMMANDS } from '../../core/cli/catalogue.ts'
import { version } from '../../core/version.ts'
import { SECTIONS } from '../catalogue/all.ts'
import { COMMON_OPTIONS } from '../catalogue/common.ts'
import { VARIABLES } from '../environment.ts'
import { EXIT_MEANINGS } from '../exit-codes.ts'
import { descriptionOf, type CommandSpec, type OptionSpec } from '../spec.ts'

export function manualPage (): string {
  return [
    `.TH BERTH 1 "" "berth ${text(version)}" "User Commands"`,
    ...section('NAME', 'berth \\- runs container images as virtual machines'),
    ...section('SYNOPSIS', '.B berth', 'COMMAND [arguments]'),
    ...section('DESCRIPTION', 'Each command has a help of its own:', '.B berth', 'COMMAND', '.BR \\-\\-help .'),
    ...SECTIONS.flatMap(({ title, commands }) => [`.SH ${text(title.toUpperCase())}`, ...commands.flatMap(command)]),
    ...section('ON THE SERVER\'S HOST', ...SERVER_COMMANDS.filter(({ name }) => name !== 'restore').flatMap(({ name, usage, summary }) => ['.TP', `.BR "berth ${text(name)}" " ${text(usage)}"`, line(summary)])),
    ...section('OPTIONS OF ALL COMMANDS', ...COMMON_OPTIONS.flatMap(option)),
    ...section('ENVIRONMENT', ...pairs(VARIABLES)),
    ...section('EXIT STATUS', ...pairs(EXIT_MEANINGS))
  ].join('\n') + '\n'
}

function command (spec: CommandSpec): string[] {
  const { name, args, options = [], examples } = spec
  return [
    `.SS "berth ${text(name)}${args === undefined ? '' : ` ${text(args)}`}"`,
    line(descriptionOf(spec)),
    ...options.flatMap(option),
    '.PP', '.nf', '.RS', ...examples.map(line), '.RE', '.fi'
  ]
}

function option ({ flags, description, values }: OptionSpec): string[] {
  return ['.TP', `.B "${text(flags)}"`, line(`${description}${values === undefined ? '' : ` (${values.join(', ')})`}`)]
}

function pairs (all: readonly (readonly [string, string])[]): string[] {
  return all.flatMap(([name, meaning]) => ['.TP', `.B "${text(name)}"`, line(meaning)])
}

function section (title: string, ...lines: readonly string[]): string[] {
  return [`.SH "${text(title)}"`, ...lines]
}

/** A line that begins with a dot or a quote would be a request of roff. */
function line (content: string): string {
  return content.startsWith('.') || content.startsWith("'") ? `\\&${text(content)}` : text(content)
}

/** Text within a line or a quoted argument. */
function text (content: string): string {
  return content.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('"', '\\(dq').replaceAll('`', '\\(ga').replaceAll('^', '\\(ha').replaceAll('~', '\\(ti').replaceAll('…', '...').replaceAll('→', '->')
}
