// A rule of the lint on the length of functions. The functions inside a function count for themselves, so that a factory
// that returns an object of short functions is not a long function.

const create = (context) => {
  const limit = context.options[0]
  const { sourceCode } = context
  const commentLines = new Set(sourceCode.getAllComments().flatMap(({ loc }) => lineRange(loc)))
  const isCode = (line) => sourceCode.lines[line - 1].trim() !== '' && !(commentLines.has(line) && isOnlyComment(sourceCode.lines[line - 1]))
  const stack = []
  const enter = (node) => { stack.push({ node, nested: new Set() }) }
  const leave = (node) => {
    const { nested } = stack.pop()
    const own = lineRange(node.loc).filter(line => !nested.has(line) && isCode(line))
    if (own.length > limit) context.report({ node, message: `this function has ${own.length} lines of its own; ${limit} are allowed` })
    // The first and the last line belong to the outer function too.
    const inner = lineRange(node.loc).slice(1, -1)
    for (const line of inner) stack.at(-1)?.nested.add(line)
  }
  return {
    FunctionDeclaration: enter,
    FunctionExpression: enter,
    ArrowFunctionExpression: enter,
    'FunctionDeclaration:exit': leave,
    'FunctionExpression:exit': leave,
    'ArrowFunctionExpression:exit': leave
  }
}

function lineRange ({ start, end }) {
  return Array.from({ length: end.line - start.line + 1 }, (_unused, index) => start.line + index)
}

function isOnlyComment (line) {
  return /^\s*(\/\/|\/\*|\*)/.test(line)
}

export const functionLength = { meta: { type: 'suggestion', schema: [{ type: 'integer' }] }, create }
