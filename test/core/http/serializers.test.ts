import t from 'tap'
import { buildSerializer } from '../../../core/http/serializers.ts'

const named = {
  Leaf: { $id: 'Leaf', type: 'object', properties: { n: { type: 'integer' } } },
  Tree: { $id: 'Tree', type: 'object', properties: { left: { $ref: 'Tree#' }, leaf: { $ref: 'Leaf#' } } },
  Broken: { $id: 'Broken', type: 'object', properties: { a: { $ref: 'Nowhere#' } } }
}
const tree = { schema: { $ref: 'Tree#' } }

t.test('an answer is written by its schema, through named schemas that refer to others and to themselves', async (t) => {
  const write = buildSerializer(named, undefined)(tree)
  t.equal(write({ left: { leaf: { n: 1, secret: 'x' } }, other: 2 }), '{"left":{"leaf":{"n":1}}}')
})

t.test('the same schema with the same named ones is compiled once, and anew when one that it needs is another', async (t) => {
  const write = buildSerializer(named, undefined)(tree)
  t.equal(buildSerializer({ ...named, More: { $id: 'More', type: 'string' } }, undefined)({ schema: { $ref: 'Tree#' } }), write)
  const other = buildSerializer({ ...named, Leaf: { $id: 'Leaf', type: 'object', properties: { secret: { type: 'string' } } } }, undefined)(tree)
  t.equal(other({ leaf: { n: 1, secret: 'x' } }), '{"leaf":{"secret":"x"}}')
})

t.test('a schema that refers to none that is there is a fault at the start, and not at the first answer', async (t) => {
  t.throws(() => buildSerializer(named, undefined)({ schema: { $ref: 'Broken#' } }))
  t.throws(() => buildSerializer(named, undefined)({ schema: { $ref: 'Nowhere#' } }))
})
