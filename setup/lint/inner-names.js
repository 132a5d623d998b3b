// A rule of the lint on names: snake_case is the API's, the database's and other programs'. Inside, a name is in camelCase; requests and answers are mapped once, at the edge.

const SNAKE = /^[a-z][a-zA-Z0-9]*_[a-z0-9_]+$/

const create = (context) => ({
  Identifier: (node) => {
    if (SNAKE.test(node.name)) context.report({ node, message: `${node.name} is a name of the API, the database or another program: map it at the edge (routes, requests, validate, view, repository)` })
  }
})

export const innerNames = { meta: { type: 'suggestion', schema: [] }, create }
