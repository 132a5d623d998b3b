/** Name of the cookie of a session in a browser; over TLS with `__Host-` in front. Whoever passes requests on to programs of others keeps it from them: a browser sends it to each port of its host. */
export const SESSION_COOKIE = 'berth_session'
