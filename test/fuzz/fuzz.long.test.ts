// What seeds.long.test.ts does, for the targets whose cases take a second or so each.
import t from 'tap'
import { runFew } from './helpers/few.ts'

await runFew(t, { areSlow: true, few: 8 })
