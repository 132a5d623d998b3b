// All commands as a table for a README.
import { SECTIONS } from '../catalogue/all.ts'

export function commandTable (): string {
  const rows = SECTIONS.map(({ title, commands }) => `| ${title} | ${commands.map(({ name }) => `\`${name}\``).join(', ')} |`)
  return ['| | commands |', '|---|---|', ...rows, ''].join('\n')
}
