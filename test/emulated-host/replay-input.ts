// A file of tests whose results are those on its standard input.
import { text } from 'node:stream/consumers'
import t from 'tap'
import { replay } from './replay.ts'

await replay(t, await text(process.stdin))
