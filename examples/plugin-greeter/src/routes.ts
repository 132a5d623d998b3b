// The HTTP side: parse, one call, status. Each route names the scope that a key needs for it.
import { NameConflict, Timestamp, Type, type Routes } from 'berth/plugin'
import { TooManyGreeted, type Greeting, type Greetings } from './greetings.ts'

const Name = Type.String({ minLength: 1, maxLength: 40, pattern: '^[A-Za-z][A-Za-z-]*$', rule: 'must have 1 to 40 letters or dashes, and begin with a letter' })

const GreetingView = Type.Object({ name: Type.String(), text: Type.String(), greeted_at: Timestamp }, { $id: 'Greeting', additionalProperties: false })

export function greetingRoutes (greetings: Greetings): Routes {
  return async (http) => {
    http.post('/greetings', {
      config: { scope: 'greeting:write', errors: [NameConflict, TooManyGreeted] },
      schema: {
        tags: ['greetings'],
        description: 'Greets somebody, once',
        body: Type.Object({ name: Name }, { additionalProperties: false, $id: 'CreateGreeting' }),
        response: { 201: GreetingView }
      }
    }, async (request, reply) => reply.code(201).send(viewOf(await greetings.greet(request.body.name))))

    http.get('/greetings/:name', {
      config: { scope: 'greeting:read' },
      schema: {
        tags: ['greetings'],
        description: 'How somebody was greeted',
        params: Type.Object({ name: Name }, { additionalProperties: false }),
        response: { 200: GreetingView }
      }
    }, async (request) => viewOf(await greetings.get(request.params.name)))
  }
}

function viewOf ({ name, text, greetedAt }: Greeting): { name: string, text: string, greeted_at: string } {
  return { name, text, greeted_at: greetedAt.toISOString() }
}
