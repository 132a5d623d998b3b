// Answers as a table for people, or as JSON, JSON lines, YAML or a template for programs.
import { wrongUsage } from '../failure.ts'
import { clean, cleanJson, cleanYaml } from '../../core/clean-text.ts'

const FORMATS = ['table', 'json', 'jsonl', 'yaml'] as const

/** How answers are printed: one of the formats, or a template such as `{{name}} {{network.ip}}`. */
export type Format = (typeof FORMATS)[number] | { readonly template: string }

export function formatOf (text: string | undefined, json: boolean): Format {
  if (json) {
    if (text !== undefined && text !== 'json') throw wrongUsage('--json and --format exclude each other')
    return 'json'
  }
  if (text === undefined) return 'table'
  const known = FORMATS.find((format) => format === text)
  if (known !== undefined) return known
  if (text.includes('{{')) return { template: text }
  throw wrongUsage(`--format ${text}: it is one of ${FORMATS.join(', ')}, or a template such as '{{name}} {{state}}'`)
}

/** The text of a value in a format for programs. In JSON lines and templates, a list gives one line for each item. */
export async function formatted (value: unknown, format: Exclude<Format, 'table'>): Promise<string> {
  if (format === 'json') return cleanJson(JSON.stringify(value, undefined, 2))
  if (format === 'yaml') return cleanYaml((await import('yaml')).stringify(value).trimEnd())
  const items: readonly unknown[] = Array.isArray(value) ? value : [value]
  return items.map((item) => format === 'jsonl' ? cleanJson(JSON.stringify(item)) : filled(format.template, item)).join('\n')
}

function filled (template: string, item: unknown): string {
  return template.replaceAll('\\t', '\t').replaceAll('\\n', '\n').replace(/\{\{ ?\.?([\w.-]{1,200}) ?\}\}/g, (_, path: string) => {
    let value: unknown = item
    for (const key of path.split('.')) value = typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined
    return value === undefined || value === null ? '' : clean(typeof value === 'object' ? JSON.stringify(value) : String(value))
  })
}
