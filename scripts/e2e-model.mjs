// The model of scripts/e2e: answers agents in the protocols that they speak, with turns out of a script.
//
//   node scripts/e2e-model.mjs LOG      prints its port on loopback, and ends when its stdin does
//
// What it answers follows from the request alone, as with a real model: from the prompt in it, and from how many results of
// tools are there already. So it keeps nothing between requests, and serves any number of agents in any order.
//
// Agents have their name before the paths of the API: http://127.0.0.1:PORT/codex-acp/v1/responses. That is for the log. They
// are also told that this is their proxy: what they want of other hosts is refused, and a line `outside` in the log.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

// --- What it says --------------------------------------------------------------------------------------------------

// A turn has words, and at most one call of a tool: a command to `run`, or a file to `read` or to `write`. Where there are two,
// the first one that the agent has a tool for is made. Or it is `refused`, by the provider, with these words, or `limited`, by any
// provider but that of codex.

// Agents want absolute paths. As every model, this one has to find out first where it is.
const LOOK = { says: 'I look around first.', run: 'pwd; cat specs/*.md' };

const SCRIPTS = [
  {
    prompt: /^# Plan$/m,
    turns: ({ prompt, fact, root, results }) => {
      const path = prompt.match(/^Write `(\S+)`/m)?.[1];
      return [
        LOOK,
        { says: 'One requirement, so one task.', write: `${root}/${path}`, content: planOf(fact) },
        ...commits(path, 'Plan the greeting', root, results),
        { says: 'One task is planned.\n\n<promise>COMPLETE</promise>' },
      ];
    },
  },
  {
    prompt: /^# Do the task (?<id>\S+)$/m,
    turns: ({ id, fact, root, results }) => {
      const path = `${root}/${fact.file}`;
      const write = { says: 'I write it.', write: path, content: `${fact.line}\n` };
      // Some agents replace no file that was not read.
      const isRefused = results.some((result) => result.includes('has not been read'));
      const isThere = results.some((result) => result.includes('already exists as a file'));
      return [
        LOOK,
        write,
        ...(isRefused ? [{ says: 'I read it first.', read: path }, write] : []),
        ...(isThere ? [{ says: 'I remove it first.', run: `rm ${fact.file}` }, write] : []),
        ...commits(fact.file, 'Greet', root, results),
        { says: `It is written and committed.\n\n<task-done>${id}</task-done>` },
      ];
    },
  },
  {
    // copilot marks what it hears where it may only look.
    prompt: /^(?:\[\[PLAN\]\] )?# Verify the task \S+$/m,
    turns: ({ fact }) => [
      // Not every agent has a shell where it may only look.
      { says: 'I look at it.', run: `cat ${fact.file}; git status --short`, read: fact.file },
      { says: 'It is there, and committed.\n\n<verify-pass/>' },
    ],
  },
  {
    prompt: /^# Be refused$/m,
    turns: () => [{ refused: 'Incorrect API key provided' }],
  },
  {
    prompt: /^# Be limited$/m,
    turns: () => [LOOK, { says: 'It is done.\n\n<promise>COMPLETE</promise>', limited: 'You have reached your usage limit' }],
  },
  {
    // The words that end the loop come from who finds the file there, so in the second conversation of its two.
    prompt: /^# Greet, unless that is done$/m,
    turns: ({ prompt, fact, root, results }) => {
      const words = prompt.match(/^with the words (.*)\./m)?.[1];
      const look = { says: 'I look whether it is there.', run: `pwd; cat ${fact.file} || true` };
      if (results[0]?.includes(`\n${fact.line}`)) return [look, { says: `It is there already.\n\n${words}` }];
      return [
        look,
        { says: 'It is not, so I write it.', write: `${root}/${fact.file}`, content: `${fact.line}\n` },
        ...commits(fact.file, 'Greet', root, results),
        { says: 'It is written and committed.' },
      ];
    },
  },
];

/** The one sentence of specs and tasks that is understood. */
const FACT = /(?<sentence>The file `(?<file>\S+)` has the line `(?<line>[^`\n]+)`\.)/;

const planOf = ({ sentence }) => `# Implementation plan

## 1. Greet
- Status: planned
- Spec: specs/greeting.md
- Description: ${sentence}
`;

/** The turns that commit a file; droid wants to look at what is staged, in a repository that is named. */
function commits(file, message, root, results) {
  const [says, add, commit] = ['I commit it.', `git add ${file}`, `commit --quiet --message '${message}' && echo committed`];
  const isLookedAt = results.some((result) => result.includes('Droid-Shield'));
  const again = [{ says, run: add }, { says, run: `git -C ${root} ${commit}` }];
  return [{ says, run: `${add} && git ${commit}` }, ...(isLookedAt ? again : [])];
}

/** What comes next in a conversation; nothing where its prompt belongs to no script. */
function nextTurn({ prompt, results }) {
  const told = results.join('\n');
  const fact = `${prompt}\n${told}`.match(FACT)?.groups ?? {};
  const root = told.match(/^(?:Output: )?(\/\S+)$/m)?.[1];
  for (const script of SCRIPTS) {
    const begins = prompt.match(script.prompt);
    if (!begins) continue;
    const turns = script.turns({ prompt, fact, root, results, ...begins.groups });
    return turns[Math.min(results.length, turns.length - 1)];
  }
  return undefined;
}

// --- The tools of agents -------------------------------------------------------------------------------------------

// By what they are for: their names, and how what a turn asks for becomes their input. Of these fields a tool gets those that it has.
const TOOLS = {
  run: {
    names: ['Bash', 'bash', 'run_shell_command', 'exec_command', 'Execute'],
    input: (command) => ({
      command,
      cmd: command,
      description: 'One step',
      summary: 'One step',
      riskLevel: 'medium',
      riskLevelReason: 'The work needs it',
    }),
  },
  read: {
    names: ['read_file', 'view', 'Read'],
    input: (path) => ({ path, file_path: path }),
  },
  write: {
    names: ['Write', 'write', 'create', 'write_file', 'Create', 'apply_patch'],
    input: (path, { content }) => ({ path, file_path: path, filePath: path, content, file_text: content }),
  },
};

/** The input of codex's tool for patches is no JSON, but a text of a form of its own. */
const patch = (path, { content }) =>
  `*** Begin Patch\n*** Add File: ${path}\n${content.trimEnd().replace(/^/gm, '+')}\n*** End Patch\n`;

/** The call that a turn makes, of a tool that the agent offers: `{ name, input }`, or nothing. */
function callOf(turn, offered) {
  for (const [kind, { names, input }] of Object.entries(TOOLS)) {
    const tool = kind in turn && offered.find(({ name }) => names.includes(name));
    if (tool?.name === 'apply_patch') return { name: tool.name, input: patch(turn[kind], turn) };
    if (tool) {
      const fields = Object.entries(input(turn[kind], turn)).filter(([field]) => field in (tool.fields ?? {}));
      return { name: tool.name, input: Object.fromEntries(fields) };
    }
  }
  return undefined;
}

/** Beside their work agents ask for titles and the like, and offer no tools for that. */
const isWork = ({ tools }) => tools.some(({ name }) => [...TOOLS.run.names, ...TOOLS.read.names].includes(name));

/** The answer to a conversation: `{ text, call, limited }`, or `{ refused }`. */
function answerTo(conversation) {
  const turn = isWork(conversation) && nextTurn(conversation);
  if (turn?.refused) return turn;
  return turn ? { text: turn.says, call: callOf(turn, conversation.tools), limited: turn.limited } : { text: 'A greeting' };
}

// --- The protocols -------------------------------------------------------------------------------------------------

// Each reads a request's body as a conversation, `{ prompt, results, tools }`, and writes an answer as one object (`whole`) or
// as the events of a stream (`pieces`).

let ids = 0;
const newId = (kind) => `${kind}_${++ids}`;

/** Content is a text or a list of parts. */
const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n');

/** A tool that is offered, with the fields of its input. */
const toolOf = (name, schema) => ({ name, fields: schema?.properties });

/** The output of a command, where its result is JSON. */
function outputOf(result) {
  try {
    return JSON.parse(result).stdout ?? result;
  } catch {
    return result;
  }
}

/** Pieces that are smaller than any marker, so that whoever looks for one has to put them together. */
const inPieces = (text) => text.match(/[^]{1,9}/g) ?? [];

const typed = (type, fields) => ({ event: type, data: { type, ...fields } });

const anthropic = {
  path: /\/v1\/messages$/,
  streams: (path, { stream }) => stream === true,

  read({ messages, tools }) {
    const blocks = messages.flatMap(({ role, content }) =>
      (typeof content === 'string' ? [{ type: 'text', text: content }] : content).map((block) => ({ role, ...block })),
    );
    return {
      prompt: textOf(blocks.filter(({ role, type }) => role === 'user' && type === 'text')),
      results: blocks.filter(({ type }) => type === 'tool_result').map(({ content }) => textOf(content)),
      tools: (tools ?? []).map(({ name, input_schema }) => toolOf(name, input_schema)),
    };
  },

  whole({ text, call }, model) {
    const content = [{ type: 'text', text }];
    if (call) content.push({ type: 'tool_use', id: newId('toolu'), ...call });
    return {
      id: newId('msg'),
      type: 'message',
      role: 'assistant',
      model,
      content,
      stop_reason: call ? 'tool_use' : 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 100, output_tokens: 10 },
    };
  },

  *pieces(answer, model) {
    const { stop_reason, ...message } = this.whole(answer, model);
    yield typed('message_start', { message: { ...message, content: [], stop_reason: null } });
    for (const [index, block] of message.content.entries()) {
      const [empty, deltas] =
        block.type === 'text'
          ? [{ text: '' }, inPieces(block.text).map((text) => ({ type: 'text_delta', text }))]
          : [{ input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input) }]];
      yield typed('content_block_start', { index, content_block: { ...block, ...empty } });
      for (const delta of deltas) yield typed('content_block_delta', { index, delta });
      yield typed('content_block_stop', { index });
    }
    yield typed('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: message.usage });
    yield typed('message_stop');
  },
};

const responses = {
  path: /\/v1\/responses$/,
  streams: (path, { stream }) => stream === true,

  read({ input, tools }) {
    const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
    return {
      prompt: items.filter(({ role }) => role === 'user').map(({ content }) => textOf(content)).join('\n'),
      results: items.filter(({ type }) => type?.endsWith('_call_output')).map(({ output }) => textOf(output)),
      tools: (tools ?? []).map(({ name, parameters }) => toolOf(name, parameters)),
    };
  },

  whole({ text, call }, model) {
    const content = [{ type: 'output_text', text, annotations: [] }];
    const output = [{ type: 'message', id: newId('msg'), role: 'assistant', status: 'completed', content }];
    if (call) output.push(this.item(call));
    return {
      id: newId('resp'),
      object: 'response',
      status: 'completed',
      model,
      output,
      usage: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
    };
  },

  item({ name, input }) {
    const call = { id: newId('item'), call_id: newId('call'), name };
    return typeof input === 'string'
      ? { type: 'custom_tool_call', ...call, input }
      : { type: 'function_call', ...call, arguments: JSON.stringify(input) };
  },

  *pieces(answer, model) {
    const response = this.whole(answer, model);
    yield typed('response.created', { response: { ...response, status: 'in_progress', output: [] } });
    for (const [output_index, item] of response.output.entries()) {
      if (item.type === 'message') {
        const place = { item_id: item.id, output_index, content_index: 0 };
        yield typed('response.output_item.added', { output_index, item: { ...item, content: [] } });
        for (const delta of inPieces(answer.text)) yield typed('response.output_text.delta', { ...place, delta });
      }
      yield typed('response.output_item.done', { output_index, item });
    }
    yield typed('response.completed', { response });
  },
};

const chat = {
  path: /\/v1\/chat\/completions$/,
  streams: (path, { stream }) => stream === true,

  read({ messages, tools }) {
    const said = (by) => messages.filter(({ role }) => role === by).map(({ content }) => textOf(content));
    return {
      prompt: said('user').join('\n'),
      results: said('tool').map(outputOf),
      tools: (tools ?? []).map((tool) => toolOf(tool.function?.name, tool.function?.parameters)),
    };
  },

  whole({ text, call }, model) {
    const message = { role: 'assistant', content: text };
    if (call) {
      const made = { name: call.name, arguments: JSON.stringify(call.input) };
      message.tool_calls = [{ id: newId('call'), type: 'function', function: made }];
    }
    return {
      id: newId('chat'),
      object: 'chat.completion',
      created: 0,
      model,
      choices: [{ index: 0, message, finish_reason: call ? 'tool_calls' : 'stop' }],
      usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
    };
  },

  *pieces(answer, model) {
    const { choices, usage, ...rest } = this.whole(answer, model);
    const [{ message, finish_reason }] = choices;
    const chunk = (fields) => ({ data: { ...rest, object: 'chat.completion.chunk', ...fields } });
    const choice = (delta, finish_reason = null) => chunk({ choices: [{ index: 0, delta, finish_reason }] });
    yield choice({ role: 'assistant', content: '' });
    for (const content of inPieces(message.content)) yield choice({ content });
    for (const [index, call] of (message.tool_calls ?? []).entries()) yield choice({ tool_calls: [{ index, ...call }] });
    yield choice({}, finish_reason);
    yield chunk({ choices: [], usage });
    yield { data: '[DONE]' };
  },
};

const gemini = {
  path: /:(generate|streamGenerate)Content$/,
  streams: (path) => path.endsWith(':streamGenerateContent'),

  read({ contents, tools }) {
    const parts = contents.filter(({ role }) => role !== 'model').flatMap((content) => content.parts);
    const responses = parts.flatMap(({ functionResponse }) => functionResponse?.response ?? []);
    return {
      prompt: textOf(parts),
      results: responses.map((response) => response.output ?? JSON.stringify(response)),
      tools: (tools ?? [])
        .flatMap(({ functionDeclarations }) => functionDeclarations ?? [])
        .map(({ name, parameters, parametersJsonSchema }) => toolOf(name, parametersJsonSchema ?? parameters)),
    };
  },

  candidate: (parts, finishReason) => ({
    candidates: [{ index: 0, content: { role: 'model', parts }, finishReason }],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
  }),

  whole({ text, call }) {
    return this.candidate([{ text }, ...this.calls(call)], 'STOP');
  },

  calls: (call) => (call ? [{ functionCall: { name: call.name, args: call.input } }] : []),

  *pieces({ text, call }) {
    for (const piece of inPieces(text)) yield { data: this.candidate([{ text: piece }]) };
    yield { data: this.candidate(this.calls(call), 'STOP') };
  },
};

const PROTOCOLS = [anthropic, responses, chat, gemini];

// --- The server ----------------------------------------------------------------------------------------------------

const [, , log] = process.argv;
if (!log) {
  console.error('usage: node scripts/e2e-model.mjs LOG');
  process.exit(1);
}

const note = (...words) => appendFileSync(log, `${words.join(' ').replace(/\s+/g, ' ').slice(0, 1000)}\n`);

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return text === '' ? {} : JSON.parse(text);
}

function send(response, status, object) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(object));
}

function stream(response, events) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const { event, data } of events) {
    if (event) response.write(`event: ${event}\n`);
    response.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
  }
  response.end();
}

/** As providers refuse; each protocol reads other fields of it. */
function refuse(response, agent, message) {
  note(agent, 'is refused', message);
  const error = { type: 'permission_error', message, code: 403, status: 'PERMISSION_DENIED' };
  send(response, 403, { type: 'error', error });
}

/** As providers do at the limit of an account; each protocol reads other fields of it. */
function limit(response, agent, message, protocol) {
  note(agent, 'is limited', message);
  // Some agents wait for as long as it says, without a word.
  if (protocol === anthropic) response.setHeader('retry-after', '3600');
  const details = [
    { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId: 'GenerateRequestsPerDay' }] },
  ];
  const error = { type: 'rate_limit_error', message, code: 429, status: 'RESOURCE_EXHAUSTED', details };
  send(response, 429, { type: 'error', error });
}

/** Whose request to another host this is: the address of the proxy has the agent's name as its user. */
function senderOf({ headers }) {
  const [, credentials = ''] = headers['proxy-authorization']?.split(' ') ?? [];
  return Buffer.from(credentials, 'base64').toString().split(':')[0];
}

async function serve(request, response) {
  const { method, url, headers } = request;
  if (headers.host !== `127.0.0.1:${server.address().port}` || !url.startsWith('/')) {
    note('outside', senderOf(request), method, url, headers.host);
    return send(response, 403, { error: { message: 'only the model can be reached' } });
  }
  const [, agent, path] = url.match(/^\/([^/?]*)([^?]*)/);
  const body = await bodyOf(request);
  if (/[/:]count_?tokens$/i.test(path)) return send(response, 200, { input_tokens: 100, totalTokens: 100 });
  const protocol = method === 'POST' && PROTOCOLS.find((known) => known.path.test(path));
  if (!protocol) {
    note(agent, method, path, 'is unknown here');
    return send(response, 404, { error: { message: `${method} ${path} is unknown here` } });
  }
  const conversation = protocol.read(body);
  const answer = answerTo(conversation);
  note(agent, 'hears', conversation.results.at(-1) ?? conversation.prompt);
  if (answer.refused) return refuse(response, agent, answer.refused);
  if (answer.limited && protocol !== responses) return limit(response, agent, answer.limited, protocol);
  note(agent, 'says', answer.text, answer.call ? JSON.stringify(answer.call) : '');
  if (protocol.streams(path, body)) return stream(response, protocol.pieces(answer, body.model));
  return send(response, 200, protocol.whole(answer, body.model));
}

const server = createServer((request, response) => {
  serve(request, response).catch((error) => {
    note('error', request.url, error.stack);
    if (response.headersSent) response.destroy();
    else send(response, 500, { error: { message: String(error) } });
  });
});
server.on('connect', (request, socket) => {
  note('outside', senderOf(request), 'CONNECT', request.url);
  socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit()).resume();
