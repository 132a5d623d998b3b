import t from 'tap'
import { compileAll } from '../../../core/http/compile-once.ts'
import { validatorOptions } from '../../../core/http/validation.ts'
import { buildValidator } from '../../../core/http/validators.ts'

const options = { customOptions: { ...validatorOptions, keywords: [...validatorOptions.keywords] } }
const named = {
  Leaf: { $id: 'Leaf', type: 'object', properties: { n: { type: 'integer' } } },
  Tree: { $id: 'Tree', type: 'object', properties: { left: { $ref: 'Tree#' }, leaf: { $ref: 'Leaf#' } } },
  Broken: { $id: 'Broken', type: 'object', properties: { a: { $ref: 'Nowhere#' } } }
}
const tree = { schema: { $ref: 'Tree#' } }
const wrong = { left: { leaf: { n: 'x' } } }

t.test('a request is checked by its schema, through named schemas that refer to others and to themselves', async (t) => {
  const check = buildValidator(named, options)(tree)
  t.equal(check({ left: { leaf: { n: 1 } } }), true)
  t.equal(check(wrong), false)
  t.match(check.errors, [{ instancePath: '/left/leaf/n', keyword: 'type' }])
})

t.test('what checks the same schema is compiled once, and anew when a named one that it needs, or a setting, is another', async (t) => {
  const check = buildValidator(named, options)(tree)
  t.equal(buildValidator({ ...named, More: { $id: 'More', type: 'string' } }, options)({ schema: { $ref: 'Tree#' } }), check)
  const text = { ...named, Leaf: { $id: 'Leaf', type: 'object', properties: { n: { type: 'string' } } } }
  t.equal(buildValidator(text, options)(tree)(wrong), true)
  t.equal(check(wrong), false, 'the first one is what it was')
  const coercing = buildValidator(named, { customOptions: { ...options.customOptions, coerceTypes: true } })(tree)
  t.equal(coercing({ leaf: { n: '1' } }), true)
})

t.test('two schemas of one name, which have nothing to do with each other, are checked each by itself', async (t) => {
  const one = buildValidator({}, options)({ schema: { $id: 'Name', type: 'string' } })
  const other = buildValidator({}, options)({ schema: { $id: 'Name', type: 'integer' } })
  t.same([one('a'), one(1), other('a'), other(1)], [true, false, false, true])
})

t.test('a default is a value of its own in each request', async (t) => {
  const check = buildValidator({}, options)({ schema: { type: 'object', properties: { tags: { type: 'object', default: {} } } } })
  const first: { tags?: Record<string, string> } = {}
  const second: { tags?: Record<string, string> } = {}
  t.ok(check(first) && check(second))
  Object.assign(first.tags ?? {}, { a: 'b' })
  t.same([first, second], [{ tags: { a: 'b' } }, { tags: {} }])
})

t.test('a schema that refers to none that is there, or has an unknown keyword, is a fault at the start, and not at the first request', async (t) => {
  t.throws(() => buildValidator(named, options)({ schema: { $ref: 'Broken#' } }))
  t.throws(() => buildValidator(named, options)({ schema: { $ref: 'Nowhere#' } }))
  t.throws(() => buildValidator(named, options)({ schema: { type: 'string', maximumLength: 3 } }), { message: /maximumLength/ })
})

t.test('faults of the same kinds are found deep in a schema, and a field that has the name of a keyword is none', async (t) => {
  for (const deep of [{ properties: { a: { items: [{ not: { maximumLength: 3 } }] } } }, { additionalProperties: { anyOf: [{ type: 'null' }, { $ref: 'Nowhere#' }] } }]) {
    t.throws(() => buildValidator(named, options)({ schema: { type: 'object', ...deep } }), { message: /maximumLength|Nowhere#/ })
  }
  t.equal(buildValidator({}, options)({ schema: { type: 'object', properties: { maximumLength: { type: 'integer' }, a: { default: { $ref: 'Nowhere#' } } } } })({ maximumLength: 3 }), true)
})

t.test('what only the compiler has against a schema is found when all are compiled', async (t) => {
  buildValidator({}, options)({ schema: { type: 'string', pattern: '(' } })
  t.throws(compileAll, { message: /regular expression/i })
})
