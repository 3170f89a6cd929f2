/** Preload that gives every module @opentelemetry/api 1.9, as a host that pins it does. */
import { registerHooks } from 'node:module'

registerHooks({
  resolve: (specifier, context, next) => next(specifier === '@opentelemetry/api' ? 'otel-api-1.9' : specifier, context),
})
