// Turns: as many at a time as were agreed, and callers one after the other, however much each of them asks for.
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { Turns } from '../../../core/jobs/turns.ts'

interface Asked { readonly name: string, end (): void, joinedBy (caller: string): void }

function line (atATime: number, mostOfOne?: number): { ask (caller: string, name: string): Asked, begun: string[] } {
  const turns = new Turns(atATime, mostOfOne)
  const begun: string[] = []
  return {
    begun,
    ask (caller, name) {
      const asked = turns.ask(caller)
      asked.begun.then(() => { begun.push(name) }, () => {})
      return { name, end: () => { asked.end() }, joinedBy: (other) => { asked.joinedBy(other) } }
    }
  }
}

t.test('no more begin than may go on at a time, and each that ends lets one begin', async (t) => {
  const { ask, begun } = line(2)
  const all = Array.from({ length: 5 }, (_, index) => ask('key', String(index)))
  await turn()
  t.same(begun, ['0', '1'])
  all[1]?.end()
  all[1]?.end()
  await turn()
  t.same(begun, ['0', '1', '2'])
  all[4]?.end()
  for (const each of [all[0], all[2]]) each?.end()
  await turn()
  t.same(begun, ['0', '1', '2', '3'], 'who has given up his place does not begin')
})

t.test('who asks for one thing waits for at most one of those who ask for many', async (t) => {
  const { ask, begun } = line(1)
  const many = Array.from({ length: 100 }, (_, index) => ask('greedy', `greedy ${index}`))
  const [first, second] = [ask('modest', 'modest'), ask('another', 'another')]
  await turn()
  many[0]?.end()
  await turn()
  many[1]?.end()
  first?.end()
  await turn()
  second?.end()
  await turn()
  t.same(begun.slice(0, 4).toSorted(), ['another', 'greedy 0', 'greedy 1', 'modest'].toSorted())
})

t.test('one caller never has all turns when that was agreed, and has its next one when one of its own ends', async (t) => {
  const { ask, begun } = line(3, 2)
  const mine = ['1', '2', '3', '4'].map((name) => ask('greedy', name))
  await turn()
  t.same(begun, ['1', '2'])
  const other = ask('modest', 'other')
  await turn()
  t.same(begun, ['1', '2', 'other'], 'the last place was left for it')
  other.end()
  await turn()
  t.equal(begun.length, 3)
  mine[0]?.end()
  await turn()
  t.same(begun, ['1', '2', 'other', '3'])
  mine[2]?.end()
  mine[1]?.end()
  await turn()
  t.same(begun, ['1', '2', 'other', '3', '4'])
})
