import t from 'tap'
import { formatRate, formatSize, parseDuration, parseRate, parseSize } from '../../core/units.ts'

t.test('sizes are read in binary units, with or without B', async (t) => {
  const table: ReadonlyArray<readonly [string, number | undefined]> = [
    ['1GB', 2 ** 30], ['512MB', 512 * 2 ** 20], ['2G', 2 ** 31], ['1gib', 2 ** 30], ['1.5 GB', 1.5 * 2 ** 30], ['4096', 4096], ['10B', 10],
    ['64KB', 65536], ['2TB', 2 ** 41], ['0', 0],
    ['', undefined], ['GB', undefined], ['-1GB', undefined], ['1XB', undefined], ['1.0001K', undefined], ['1e3', undefined], ['1I', undefined],
    ['9999999PB', undefined], ['1GB2', undefined], ['0x10', undefined]
  ]
  for (const [text, bytes] of table) t.equal(parseSize(text), bytes, JSON.stringify(text))
})

t.test('a size is written in its largest exact unit and reads back the same', async (t) => {
  for (const [bytes, text] of [[2 ** 30, '1GB'], [1536 * 2 ** 20, '1536MB'], [1000, '1000B'], [0, '0B'], [2 ** 41, '2TB']] as const) {
    t.equal(formatSize(bytes), text)
    t.equal(parseSize(text), bytes)
  }
})

t.test('rates are binary bytes or decimal bits per second', async (t) => {
  const table: ReadonlyArray<readonly [string, number | undefined]> = [
    ['100MB/s', 100 * 2 ** 20], ['1Gbps', 125_000_000], ['125MB/s', 125 * 2 ** 20], ['10mbps', 1_250_000], ['8bps', 1], ['1KB/s', 1024], ['1Gbit/s', 125_000_000],
    ['100MBps', 100 * 2 ** 20], ['100MiBps', 100 * 2 ** 20], ['1GBps', 2 ** 30], ['1TBps', 2 ** 40], ['1PBps', 2 ** 50], ['64 KBps', 65_536], ['100Bps', 100], ['100kBps', 102_400],
    ['1GBPS', 125_000_000], ['1gbps', 125_000_000], ['1 GBIT/S', 125_000_000], ['1mb/s', 2 ** 20],
    ['100Bit/sps', undefined], ['1Mibps', undefined],
    ['100', undefined], ['100MB', undefined], ['fast', undefined], ['-1Mbps', undefined], ['/s', undefined]
  ]
  for (const [text, rate] of table) t.equal(parseRate(text), rate, JSON.stringify(text))
})

t.test('a rate that is written reads back the same', async (t) => {
  for (const text of ['100MB/s', '1Gbps', '10Mbps', '1KB/s', '1GB/s']) {
    t.equal(formatRate(parseRate(text) ?? NaN), text)
  }
  t.equal(parseRate(formatRate(1_234_567)), 1_234_567)
})

t.test('durations are those of Go', async (t) => {
  const table: ReadonlyArray<readonly [string, number | undefined]> = [
    ['1h30m', 5_400_000], ['500ms', 500], ['1.5s', 1500], ['0', 0], ['0s', 0], ['2m', 120_000], ['.5s', 500], ['100us', 0.1],
    ['', undefined], ['5', undefined], ['-1s', undefined], ['1d', undefined], ['1h 30m', undefined], ['s', undefined], ['1s!', undefined]
  ]
  for (const [text, ms] of table) t.equal(parseDuration(text), ms, JSON.stringify(text))
})
