// Bodies that no route expects, each with what it says of itself.
import { deflateSync, gzipSync } from 'node:zlib'

export interface HostileBody {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: () => Buffer
}

const json = (name: string, text: string | (() => string), type = 'application/json', more: Record<string, string> = {}): HostileBody => ({ name, headers: { 'content-type': type, ...more }, body: () => Buffer.from(typeof text === 'string' ? text : text()) })
const bytes = (name: string, body: () => Buffer, headers: Record<string, string>): HostileBody => ({ name, headers, body })
const FIELDS = ['name', 'image', 'tags', 'env', 'cmd', 'size_gb', 'volumes', 'network', 'credentials', 'id'] as const
const everyField = (value: string): string => `{${FIELDS.map(name => `"${name}":${value}`).join()}}`
const JSON_TYPE = { 'content-type': 'application/json' }

export const HOSTILE_BODIES: readonly HostileBody[] = [
  json('lists in lists', () => '['.repeat(300_000) + ']'.repeat(300_000)),
  json('objects in objects', () => `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`),
  json('lists in a field', () => `{"name":${'['.repeat(1_000)}${']'.repeat(1_000)}}`),
  json('a long list', () => `[${'0,'.repeat(400_000)}0]`),
  json('a long list in each field', () => everyField(`[${'0,'.repeat(1_500)}0]`)),
  json('a list of objects', () => `{"cmd":[${'{},'.repeat(15_000)}{}],"volumes":[${'{},'.repeat(2_000)}{}]}`),
  json('many fields', () => `{${Array.from({ length: 19_000 }, (_, at) => `"f${at}":1`).join()}}`),
  json('many fields in a field', () => `{"env":{${Array.from({ length: 19_000 }, (_, at) => `"f${at}":1`).join()}},"tags":{}}`),
  json('a long string', () => `{"name":"${'x'.repeat(900_000)}"}`),
  json('long strings', () => everyField(`"${'a-'.repeat(40_000)}"`)),
  json('a long name of a field', () => `{"${'x'.repeat(900_000)}":1}`),
  json('the same field twice', '{"name":"a","name":"b","image":"a","image":{}}'),
  json('__proto__', '{"__proto__":{"name":"a","image":"b"},"name":"a"}'),
  json('__proto__ further inside', '{"tags":{"__proto__":{"a":"b"}},"env":{"__proto__":"x"},"network":{"__proto__":{"enabled":true}}}'),
  json('constructor', '{"constructor":{"prototype":{"name":"a"}},"name":"a"}'),
  json('names of methods', '{"toString":1,"valueOf":1,"hasOwnProperty":1,"name":{"toString":"x"}}'),
  json('lone surrogates', everyField('"\\ud800a\\udc00"')),
  json('NUL', everyField('"a\\u0000b"')),
  json('control characters', everyField('"\\u001b[2J\\u0007\\r\\n"')),
  json('white space alone', everyField('" \\t\\u00a0\\u2028"')),
  ...['1e999', '-1e999', '9007199254740993', '-0', '1e-400', '0.1', '18446744073709551616', '-1', '2147483648', '1'.repeat(4_000)].map(number => json(`the number ${number.slice(0, 20)}`, everyField(number))),
  ...['null', 'true', '{}', '[]', '""', '0', '[[]]', '[null]', '{"a":null}'].map(value => json(`each field ${value}`, everyField(value))),
  ...['null', 'true', '[]', '""', '0', '"text"', ' ', '\n'].map(value => json(`nothing but ${JSON.stringify(value)}`, value)),
  json('a mark of the byte order', '\ufeff{"name":"a"}'),
  ...['{', '{"name"', '{"name":', '{"name":"a', '{"name":"a"', '[1,', '{"name":"\\u12'].map(text => json(`JSON that ends in ${text}`, text)),
  ...['{"name":"a",}', "{'name':'a'}", '{name:"a"}', '{"name":01}', '{"name":NaN}', '{"a":1}{"b":2}', '{"a":1} x', '// a\n{}', '{"a":"\t"}'].map(text => json(`nearly JSON: ${text.slice(0, 12)}`, text)),
  json('another character set', '{"name":"a"}', 'application/json; charset=utf-16'),
  json('an unknown character set', '{"name":"a"}', 'application/json; charset=x-none'),
  bytes('UTF-16 that says nothing', () => Buffer.from('{"name":"a"}', 'utf16le'), JSON_TYPE),
  bytes('no UTF-8', () => Buffer.from('{"name":"\xff\xfe\xc0\x80"}', 'latin1'), JSON_TYPE),
  bytes('random-looking bytes', () => Buffer.from(Array.from({ length: 5_000 }, (_, at) => at * 193 % 256)), JSON_TYPE),
  bytes('zeros', () => Buffer.alloc(100_000), JSON_TYPE),
  bytes('gzip', () => gzipSync('{"name":"a"}'), { ...JSON_TYPE, 'content-encoding': 'gzip' }),
  bytes('gzip of many zeros', () => gzipSync(Buffer.alloc(2 ** 26)), { ...JSON_TYPE, 'content-encoding': 'gzip' }),
  bytes('deflate', () => deflateSync('{"name":"a"}'), { ...JSON_TYPE, 'content-encoding': 'deflate' }),
  json('an encoding that is none', '{"name":"a"}', 'application/json', { 'content-encoding': 'identity, x' }),
  json('a type that is none', '{"name":"a"}', 'json'),
  json('an empty type', '{"name":"a"}', ''),
  json('a form', 'name=a&image=b', 'application/x-www-form-urlencoded'),
  json('text', '{"name":"a"}', 'text/plain'),
  json('a merge patch', '{"name":"a"}', 'application/merge-patch+json'),
  json('several parts without a boundary', '--b\r\n\r\n--b--', 'multipart/form-data'),
  json('several parts that do not end', '--b\r\nContent-Disposition: form-data; name="source"\r\n\r\nx', 'multipart/form-data; boundary=b'),
  json('many parts', () => '--b\r\nContent-Disposition: form-data; name="tags"\r\n\r\nx\r\n'.repeat(9_000) + '--b--\r\n', 'multipart/form-data; boundary=b'),
  json('long lists and many fields in the parts of a form', () => `${['secrets', 'tags', 'build_args'].map((name, at) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${at === 0 ? `[${'0,'.repeat(150_000)}0]` : `{${Array.from({ length: 30_000 }, (_, key) => `"${key}":0`).join()}}`}\r\n`).join('')}--b--\r\n`, 'multipart/form-data; boundary=b'),
  json('a long head of a part', () => `--b\r\nContent-Disposition: form-data; name="${'x'.repeat(500_000)}"\r\n\r\nx\r\n--b--\r\n`, 'multipart/form-data; boundary=b')
]
