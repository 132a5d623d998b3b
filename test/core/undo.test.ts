import t from 'tap'
import { createUndo } from '../../core/undo.ts'

t.test('steps are undone last first, each even when one fails, and the failures are returned', async (t) => {
  const undo = createUndo()
  const ran: string[] = []
  const broken = new Error('broken')
  undo.add(() => { ran.push('first') })
  undo.add(() => { ran.push('second'); throw broken })
  undo.add(async () => { ran.push('third') })
  t.same(await undo.run(), [broken])
  t.same(ran, ['third', 'second', 'first'])
  t.same(await undo.run(), [])
  t.equal(ran.length, 3, 'a second run does nothing')
})

t.test('a step that is added while others are undone runs too', async (t) => {
  const undo = createUndo()
  const ran: string[] = []
  undo.add(() => { ran.push('outer'); undo.add(() => { ran.push('late') }) })
  await undo.run()
  t.same(ran, ['outer', 'late'])
})

t.test('dropped steps never run', async (t) => {
  const undo = createUndo()
  undo.add(() => { t.fail('it was dropped') })
  undo.drop()
  t.same(await undo.run(), [])
})
