import t from 'tap'
import { createEventBus } from '../../../core/jobs/events.ts'
import { createLog } from '../../../core/logging/log.ts'

declare module '../../../core/contracts/services.ts' {
  interface DomainEvents { 'test.happened': { readonly value: number } }
}

t.test('every listener hears an event, also when another one throws', async (t) => {
  const lines: string[] = []
  const bus = createEventBus(createLog({ level: 'info', destination: { write: (line) => { lines.push(line) } } }))
  const heard: number[] = []
  bus.on('test.happened', () => { throw new Error('first') })
  bus.on('test.happened', async () => { throw new Error('second') })
  const off = bus.on('test.happened', ({ value }) => heard.push(value))
  bus.emit('test.happened', { value: 1 })
  off()
  off()
  bus.emit('test.happened', { value: 2 })
  await new Promise(setImmediate)
  t.same(heard, [1])
  t.equal(lines.length, 4)
  t.match(lines[0], /event listener failed/)
})

t.test('a listener that removes itself keeps nobody from hearing', async (t) => {
  const bus = createEventBus(createLog({ level: 'silent' }))
  const heard: string[] = []
  const off = bus.on('test.happened', () => { heard.push('once'); off() })
  bus.on('test.happened', () => heard.push('always'))
  bus.emit('test.happened', { value: 1 })
  bus.emit('test.happened', { value: 1 })
  t.same(heard, ['once', 'always', 'always'])
})
