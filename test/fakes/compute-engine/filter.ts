import { invalid } from './api-error.ts';

type Predicate = (resource: object) => boolean;

/**
 * `filter` of the list calls, as far as it is used: comparisons with `=`, `!=` or `:` (has, or `:*` for "has at all"),
 * in parentheses and joined by AND. Anything else is refused, so that no test rests on a filter that was not understood.
 */
export function parseFilter(filter: string | null): Predicate {
  if (filter === null || filter === '') return () => true;
  const terms = filter.split(' AND ').map((term) => parseTerm(term.trim(), filter));
  return (resource) => terms.every((matches) => matches(resource));
}

function parseTerm(term: string, whole: string): Predicate {
  const inner = /^\((.*)\)$/.exec(term)?.[1] ?? term;
  const match = /^([a-zA-Z][-\w.]*?)\s*(!=|=|:)\s*("[^"]*"|[^\s"()]+)$/.exec(inner);
  const [, field = '', operator, quoted = ''] = match ?? [];
  if (!match) throw invalid('filter', whole, 'Invalid list filter expression.');
  const wanted = quoted.replace(/^"(.*)"$/, '$1');
  return (resource) => {
    const value = member(resource, field);
    if (operator === ':') return value !== undefined && (wanted === '*' || value.includes(wanted));
    return (value === wanted) === (operator === '=');
  };
}

/** Of `labels.a-key`, what follows the dot is one key, however it is spelt. */
function member(resource: object, field: string): string | undefined {
  const [first = '', ...rest] = field.split('.');
  const value = (resource as Record<string, unknown>)[first];
  const found = rest.length > 0 ? (value as Record<string, unknown> | undefined)?.[rest.join('.')] : value;
  return found === undefined ? undefined : String(found);
}
