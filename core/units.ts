// Converts sizes, rates and durations between the form that people write and numbers. Sizes are binary (1G = 2^30), bit rates decimal.

const SIZE_UNITS = [
  ['PB', 2 ** 50], ['TB', 2 ** 40], ['GB', 2 ** 30], ['MB', 2 ** 20], ['KB', 2 ** 10]
] as const
const BIT_UNITS = [['Tbps', 1e12], ['Gbps', 1e9], ['Mbps', 1e6], ['Kbps', 1e3], ['bps', 1]] as const
const MS_BY_DURATION_UNIT: Readonly<Record<string, number>> = {
  ns: 1e-6, us: 1e-3, µs: 1e-3, μs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000
}

/** Bytes of `1GB`, `512MB`, `2G`, `1.5GiB` or `4096`; undefined when the text is not a size or not a whole number of bytes. */
export function parseSize (text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?) ?(?:([KMGTP])(?:I?B)?|B)?$/.exec(text.trim().toUpperCase())
  if (match === null) return undefined
  const unit = match[2] === undefined ? 1 : SIZE_UNITS.find(([name]) => name.startsWith(match[2] ?? ''))?.[1] ?? 1
  return whole(Number(match[1]) * unit)
}

/** The shortest exact form: `1GB`, `1536MB`, `1000B`. */
export function formatSize (bytes: number): string {
  const unit = SIZE_UNITS.find(([, size]) => bytes >= size && bytes % size === 0)
  return unit === undefined ? `${bytes}B` : `${bytes / unit[1]}${unit[0]}`
}

const ROUNDED_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** For people, who need no exact number. @example roundedSize(1536) is `1.5 KiB` */
export function roundedSize (bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < ROUNDED_UNITS.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${ROUNDED_UNITS[unit] ?? ''}`
}

/**
 * Bytes per second of `100MB/s` or `100MBps` (binary bytes), or of `1Gbps` (decimal bits); undefined when the text is not a rate. Only its case tells what a `Bps` is: where all letters have one, `mbps` and `MBPS` are
 * bits, as in most of what people write.
 */
export function parseRate (text: string): number | undefined {
  const trimmed = text.trim()
  const bytes = /^(.*b)\/s$/i.exec(trimmed) ?? /^(.*B)ps$/.exec(trimmed)
  if (bytes?.[1] !== undefined) return parseSize(bytes[1])
  const bits = /^(\d+(?:\.\d+)?) ?([KMGT]?)(?:bps|bit\/s|bit)$/i.exec(trimmed)
  if (bits === null) return undefined
  const name = `${(bits[2] ?? '').toUpperCase()}bps`
  const unit = BIT_UNITS.find(([candidate]) => candidate === name)?.[1] ?? 1
  return whole(Math.floor(Number(bits[1]) * unit / 8))
}

/** The shortest exact form of a rate in bytes per second: `100MB/s`, `1Gbps`. */
export function formatRate (bytesPerSecond: number): string {
  const bits = bytesPerSecond * 8
  const binary = SIZE_UNITS.find(([, size]) => bytesPerSecond >= size && bytesPerSecond % size === 0)
  const decimal = BIT_UNITS.find(([, size]) => bits >= size && bits % size === 0)
  const inBytes = `${formatSize(bytesPerSecond)}/s`
  if (decimal === undefined || decimal[1] === 1) return inBytes
  const inBits = `${bits / decimal[1]}${decimal[0]}`
  return binary === undefined || inBits.length < inBytes.length ? inBits : inBytes
}

/** Milliseconds of a Go duration such as `1h30m`, `1.5s` or `0`; undefined when the text is not one, or negative. */
export function parseDuration (text: string): number | undefined {
  if (text === '0') return 0
  const parts = [...text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gy)]
  if (parts.length === 0 || parts.map((part) => part[0]).join('') !== text) return undefined
  const ms = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (MS_BY_DURATION_UNIT[unit ?? ''] ?? NaN), 0)
  return Number.isFinite(ms) && ms <= Number.MAX_SAFE_INTEGER ? ms : undefined
}

function whole (value: number): number | undefined {
  return Number.isSafeInteger(value) ? value : undefined
}
