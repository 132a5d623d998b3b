// A rule of the lint on calls: a bare `true` or `false` beside other arguments says nothing about what it turns on, so it is a property with a name, or a word.

// Of Node and of libraries, which fix the order of their arguments: timers that resolve to a value, decorators, and ASN.1.
const OTHERS = new Set(['setTimeout', 'sleep', 'decorate', 'setKeepAlive', 'getIn', 'create'])

const nameOf = (callee) => callee.type === 'Identifier' ? callee.name : callee.type === 'MemberExpression' && callee.property.type === 'Identifier' ? callee.property.name : ''

const create = (context) => {
  const check = ({ callee, arguments: given }) => {
    if (given.length < 2 || OTHERS.has(nameOf(callee))) return
    for (const node of given) {
      if (node.type === 'Literal' && typeof node.value === 'boolean') context.report({ node, message: `a bare ${node.value} beside other arguments: give it a name, as in { follow: ${node.value} }` })
    }
  }
  return { CallExpression: check, NewExpression: check }
}

export const namedArguments = { meta: { type: 'suggestion', schema: [] }, create }
