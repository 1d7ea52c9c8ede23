#include "schedules/text/csv.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/placement_of.h"

namespace stagewright {

namespace {

constexpr std::string_view overlap = "OVERLAP_F_B";
constexpr std::string_view grouped = "GROUPED";   // messages posted together
constexpr std::string_view batched = "BATCH_P2P"; // PyTorch's word for the same

constexpr std::size_t mostSlicesOfCsv = 4096;
constexpr std::size_t mostRanks = 65536; // a rank is 16 bits in a timeline

constexpr std::size_t mostQuoted = 80; // bytes of a cell in a message

// At most so many bytes, cut between characters.
std::string cut(std::string_view text, std::size_t most)
{
    if (text.size() <= most) return std::string(text);
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return std::string(text.substr(0, end)) + "…";
}

constexpr std::uint8_t oldFullMark = 0x80; // in Op::half, until the dialect is known: the cell has a BW

// The cells of a text that lies in memory, or comes in parts.
class Cells {
public:
    static constexpr std::size_t window = std::size_t{1} << 20; // of a text in parts

    explicit Cells(std::string_view text) : m_left(text) { skipMark(); }
    explicit Cells(const TextSource& source) : m_source(&source), m_buffer(window)
    {
        fill();
        skipMark();
    }

    // Whether the first line is one of settings.
    bool startsWith(char letter) const
    {
        const std::size_t at = m_left.find_first_not_of(" \t\r\"");
        return at != std::string_view::npos && m_left[at] == letter;
    }
    enum class End {
        Comma,
        Line,
        Text,
        TooLong,
    };
    // The next cell, or what is left of the line. It is valid until the next call. A comma in quotes is part of its
    // cell.
    End next(std::string_view& cell, bool wholeLine)
    {
        bool quoted = false;
        for (std::size_t at = 0;;) {
            for (; at < m_left.size(); ++at)
                if (const char letter = m_left[at]; letter == '"') {
                    quoted = !quoted;
                } else if (letter == '\n' || (letter == ',' && !wholeLine && !quoted)) {
                    cell = m_left.substr(0, at);
                    m_left.remove_prefix(at + 1);
                    return letter == '\n' ? End::Line : End::Comma;
                }
            if (fill()) continue;
            cell = std::exchange(m_left, {});
            return m_source != nullptr && cell.size() == window ? End::TooLong : End::Text;
        }
    }

private:
    // More bytes behind those that are left. False: the end, or no room.
    bool fill()
    {
        if (m_source == nullptr || m_left.size() == m_buffer.size()) return false;
        if (!m_left.empty()) std::memmove(m_buffer.data(), m_left.data(), m_left.size());
        const std::size_t got = (*m_source)(m_buffer.data() + m_left.size(), m_buffer.size() - m_left.size());
        m_left = {m_buffer.data(), m_left.size() + got};
        return got > 0;
    }
    void skipMark()
    {
        while (m_left.size() < 3 && fill()) {
        }
        if (m_left.starts_with("\xef\xbb\xbf")) m_left.remove_prefix(3); // byte order mark
    }

    std::string_view m_left; // that was not taken yet
    const TextSource* m_source = nullptr;
    std::vector<char> m_buffer;
};

struct CsvReader {
    CsvOptions options;
    Schedule schedule;
    int replicas = 1;
    bool blankCells = false; // or others: a line has a comma
    int ranks = 0;           // lines, where the first line says so; 0: it does not
    int line = 0;            // from 1, for messages
    int cell = 0;
    std::string_view text; // of the cell

    struct Place {
        int line = 0;
        int cell = 0;
        std::string text;
    };
    // First cells that distinguish the dialects.
    std::optional<Place> oldFull; // BW
    std::optional<Place> inputGrad;
    std::optional<Place> weightGrad;
    std::optional<Place> blank;   // between cells
    std::optional<Place> lowered; // a cell that compute-only files don't have

    tl::unexpected<Error> error(const std::string& what, std::string remedy = {}) const
    {
        return error(here(), what, std::move(remedy));
    }
    static tl::unexpected<Error> error(const Place& place, const std::string& what, std::string remedy = {})
    {
        return fail(
            ErrorCode::Unreadable,
            fmt::format("line {}, cell {} ({}): {}", place.line, place.cell, place.text, cut(what, 4 * mostQuoted)),
            std::move(remedy));
    }
    Place here() const { return {line, cell, cut(text, mostQuoted)}; }

    Result<void> readSettings(std::string_view row);
    Result<void> readCell(std::string_view part);
    Result<void> readOp(std::string_view word);
    Result<void> readGroup();
    Result<void> addRow(int at); // of that line
    Result<void> addBlankRows(int rows);
    Result<void> readRows(Cells& cells);
    Result<Schedule> read(Cells cells, std::string name);
    Result<void> applyDialect();
    Result<void> checkPyTorch(const Op& op) const;
};

// "# weights=stashed slices=6,4,3,3"
Result<void> CsvReader::readSettings(std::string_view row)
{
    cell = 1;
    text = trimmed(row);
    // a spreadsheet's
    while (!text.empty() && (text.back() == ',' || text.back() == '"')) text = trimmed(text.substr(0, text.size() - 1));
    if (text.front() == '"') text = trimmed(text.substr(1));
    if (options.pytorch) return error("PyTorch's files have no settings line", "remove the line");
    for (const std::string_view word : wordsOf(text.substr(1))) {
        const KeyValue setting = keyValueOf(word);
        const std::string_view key = setting.key;
        const std::string_view value = setting.value.value_or("");
        if (key == "weights") {
            const auto rule = weightRuleOf(value);
            if (!rule)
                return error(fmt::format("weights: '{}' is unknown", value),
                             "use synchronous, stashed, two_versions or predicted");
            schedule.weights = *rule;
        } else if (key == "slices") {
            schedule.sliceLengths.clear();
            for (const std::string_view item : split(value, ",")) {
                const auto length = wholeOf<std::int64_t>(item);
                if (!length || *length < 1 || *length > std::numeric_limits<std::uint32_t>::max() ||
                    schedule.sliceLengths.size() == mostSlicesOfCsv)
                    return error("slices: whole numbers from 1, separated by commas, expected", "slices=6,4,3,3");
                schedule.sliceLengths.push_back(static_cast<std::uint32_t>(*length));
            }
        } else if (key == "replicas") {
            const auto count = wholeOf<int>(value);
            if (!count || *count < 1) return error("replicas: a whole number from 1 expected", "replicas=2");
            replicas = *count;
        } else if (key == "ranks") {
            const auto count = wholeOf<int>(value);
            if (!count || *count < 1 || static_cast<std::size_t>(*count) > mostRanks)
                return error(fmt::format("ranks: a whole number from 1 to {} expected", mostRanks), "ranks=4");
            ranks = *count;
        } else {
            return error(fmt::format("'{}' is not a setting", word),
                         "the settings are weights=RULE, slices=LENGTHS, replicas=N and ranks=N");
        }
    }
    return {};
}

Result<void> CsvReader::checkPyTorch(const Op& op) const
{
    if (!options.pytorch) return {};
    std::string_view what = ruleOf(op.kind).notInPyTorch;
    if (what.empty() && op.count > 1) what = "one op over several microbatches";
    if (what.empty() && op.slice >= 0) what = "a sequence slice";
    if (what.empty() && op.half > 0) what = "half an op";
    if (what.empty()) return {};
    return error(fmt::format("{} is unknown to PyTorch", what), "read or write it without the PyTorch restriction");
}

Result<void> CsvReader::readOp(std::string_view word)
{
    // BW, the old dialect's full backward, is read as B and remembered.
    std::string replaced;
    const std::size_t bw = word.find("BW");
    const bool old = bw != std::string_view::npos && bw > 0 && word[bw - 1] >= '0' && word[bw - 1] <= '9' &&
                     bw + 2 < word.size() && word[bw + 2] >= '0' && word[bw + 2] <= '9';
    if (old) replaced = fmt::format("{}B{}", word.substr(0, bw), word.substr(bw + 2));
    auto op = parseOp(old ? std::string_view(replaced) : word);
    if (!op) return error(op.error().message, op.error().remedy);
    const KindTraits& rule = ruleOf(op->kind);
    if (auto checked = checkPyTorch(*op); !checked) return checked;
    auto& ops = schedule.order.back();
    if (old) {
        if (!oldFull) oldFull = here();
        op->half |= oldFullMark;
    }
    if (!rule.computeOnly && !lowered) lowered = here();
    if (isInputGrad(op->kind) && !inputGrad) inputGrad = here();
    if (isWeightGrad(op->kind) && !weightGrad) weightGrad = here();
    schedule.stages = std::max(schedule.stages, op->stage + 1);
    if (hasMicrobatch(*op)) schedule.microbatches = std::max(schedule.microbatches, op->microbatch + op->count);
    constexpr std::size_t large = std::size_t{1} << 20; // a row of millions grows by a quarter, not to its double
    if (ops.size() == ops.capacity() && ops.size() >= large) ops.reserve(ops.size() + ops.size() / 4);
    ops.push_back(*op);
    return {};
}

// A pair or a group: "(0F7;7B3)OVERLAP_F_B", "(1SEND_B0;1RECV_F1;3SEND_F2)GROUPED".
Result<void> CsvReader::readGroup()
{
    const std::string_view whole = text;
    const std::size_t close = whole.find(')');
    if (close == std::string_view::npos) return error("')' is missing", "a pair reads (0F7;7B3)OVERLAP_F_B");
    const std::string_view ending = trimmed(whole.substr(close + 1));
    const bool messages = ending == grouped || ending == batched;
    if (ending != overlap && !messages)
        return error(fmt::format("'{}' after the pair, {} expected", ending, overlap),
                     "a pair reads (0F7;7B3)OVERLAP_F_B, messages posted together (1SEND_B0;1RECV_F1)GROUPED");
    if (ending == grouped && options.pytorch)
        return error("GROUPED is unknown to PyTorch, whose word is BATCH_P2P",
                     "read or write it without the PyTorch restriction");
    const std::vector<std::string_view> words = split(whole.substr(1, close - 1), ";");
    if (!messages && words.size() != 2)
        return error("a pair has exactly two ops, separated by ';'",
                     "messages posted together are any number, and end with GROUPED");
    auto& ops = schedule.order.back();
    const std::size_t first = ops.size();
    for (const std::string_view word : words) {
        if (ops.size() > first) schedule.paired.back().push_back(static_cast<std::uint32_t>(ops.size() - 1));
        if (auto read = readOp(trimmed(word)); !read) return read;
        if (isMessage(ops.back().kind) != messages)
            return error(
                fmt::format("{} in a {} that ends with {}", toText(ops.back()), messages ? "group" : "pair", ending),
                "OVERLAP_F_B holds two compute ops, GROUPED and BATCH_P2P messages");
    }
    return {};
}

// An op, a pair or a group, in quotes or not.
Result<void> CsvReader::readCell(std::string_view part)
{
    text = part;
    if (text.front() == '"') {
        if (text.size() < 2 || text.back() != '"')
            return error("the closing quotation mark is missing", "quote a whole cell, or none of it");
        text = trimmed(text.substr(1, text.size() - 2));
    }
    return text.starts_with('(') ? readGroup() : readOp(text);
}

Result<void> CsvReader::addRow(int at)
{
    if (schedule.order.size() == mostRanks) {
        if (at != line) text = {}; // a blank one
        line = at;
        cell = 1;
        return error(fmt::format("more than {} lines, and a line is a rank", mostRanks),
                     "check that this is a schedule CSV");
    }
    schedule.order.emplace_back();
    schedule.paired.emplace_back();
    return {};
}

// That came before this line.
Result<void> CsvReader::addBlankRows(int rows)
{
    for (; rows > 0; --rows)
        if (auto added = addRow(line - rows); !added) return added;
    return {};
}

// A line without ops is a rank only where every line is one.
Result<void> CsvReader::readRows(Cells& cells)
{
    const bool every = options.everyRow || ranks > 0;
    int blankRows = 0;   // since the last row with ops
    int withCommas = 0;  // of them, up to the last with a cell
    bool hasOps = false; // the line
    std::optional<Place> blankHere;
    cell = 0;
    for (auto end = Cells::End::Comma; end != Cells::End::Text;) {
        std::string_view part;
        end = cells.next(part, false);
        ++cell;
        text = part;
        if (end == Cells::End::TooLong)
            return error(fmt::format("a cell of more than {} bytes", Cells::window),
                         "check that this is a schedule CSV");
        text = trimmed(part);
        if (text.find_first_not_of("\" \t") == std::string_view::npos) text = {};
        if (!text.empty()) {
            if (!hasOps) {
                if (auto added = addBlankRows(every ? blankRows : 0); !added) return added;
                if (auto added = addRow(line); !added) return added;
                blankRows = withCommas = 0;
                hasOps = true;
            }
            if (auto done = readCell(text); !done) return done;
        } else if (end == Cells::End::Comma && !blankHere) {
            blankHere = here();
        }
        if (end == Cells::End::Comma) continue;
        if (hasOps && blankHere && !blank) blank = blankHere;
        if (!hasOps) ++blankRows;
        if (!hasOps && cell > 1) withCommas = blankRows;
        blankCells = blankCells || cell > 1;
        hasOps = false;
        blankHere.reset();
        if (end == Cells::End::Line) {
            ++line;
            cell = 0;
        }
    }
    if (ranks == 0) return addBlankRows(every ? withCommas : 0);
    if (schedule.order.size() > static_cast<std::size_t>(ranks))
        return fail(
            ErrorCode::Unreadable,
            fmt::format("the first line says ranks={}, but there are {} lines of ranks", ranks, schedule.order.size()),
            "correct the number, or remove lines");
    schedule.order.resize(static_cast<std::size_t>(ranks));
    schedule.paired.resize(static_cast<std::size_t>(ranks));
    return {};
}

Result<void> CsvReader::applyDialect()
{
    const bool old = options.dialect == CsvDialect::Old ||
                     (options.dialect == CsvDialect::Auto && (oldFull || (weightGrad && !inputGrad)));
    if (!old) {
        if (!oldFull) return {};
        return error(*oldFull, "BW is the old dialect's full backward; here it is written B",
                     "read the file as the old dialect");
    }
    if (inputGrad)
        return error(*inputGrad,
                     oldFull
                         ? fmt::format("I belongs to the new dialect, but line {}, cell {} ({}) belongs to the old one",
                                       oldFull->line, oldFull->cell, oldFull->text)
                         : std::string("I belongs to the new dialect; the old one writes B for the input gradient"),
                     "write the whole file in one dialect");
    for (auto& ops : schedule.order)
        for (Op& op : ops) {
            if (isFullBackward(op.kind) && (op.half & oldFullMark) == 0) op.kind = otherReturn(op.kind);
            op.half &= static_cast<std::uint8_t>(~oldFullMark);
        }
    return {};
}

Result<Schedule> CsvReader::read(Cells cells, std::string name)
{
    line = 1;
    const bool settings = cells.startsWith('#');
    if (settings) {
        std::string_view row;
        const auto end = cells.next(row, true);
        if (end == Cells::End::TooLong)
            return error(fmt::format("a first line of more than {} bytes", Cells::window),
                         "check that this is a schedule CSV");
        STAGEWRIGHT_CHECK(readSettings(row));
        ++line;
    }
    STAGEWRIGHT_CHECK(readRows(cells));
    if (schedule.order.empty() && !settings)
        return fail(ErrorCode::Unreadable, blankCells ? "no ops: every cell is blank" : "no ops: the file is empty",
                    "one line per rank, cells like 2F0");
    STAGEWRIGHT_CHECK(applyDialect());
    if (options.pytorch && lowered && blank)
        return error(*blank,
                     fmt::format("a blank cell, but line {}, cell {} ({}) makes the file a lowered one", lowered->line,
                                 lowered->cell, lowered->text),
                     "PyTorch's compute_comms form has no blank cells");
    if (schedule.opCount() == 0)
        return fail(ErrorCode::Unreadable, "no ops: every cell is blank", "one line per rank, cells like 2F0");
    schedule.ranks = static_cast<int>(schedule.order.size());
    schedule.placement = placementOf(schedule.order, schedule.stages);
    schedule.name = std::move(name);
    if (options.pytorch && schedule.placement.hasCopies())
        for (int s = 0; s < schedule.stages; ++s)
            if (const auto& copies = schedule.placement.copiesOf(s); copies.size() > 1)
                return fail(ErrorCode::Unreadable,
                            fmt::format("stage {} is in lines {} and {}; PyTorch keeps a stage on one rank", s,
                                        copies[0].rank + 1, copies[1].rank + 1),
                            "read it without the PyTorch restriction");
    if (replicas > 1) return overReplicas(schedule, replicas);
    return std::move(schedule);
}

} // namespace

Result<Schedule> readScheduleCsv(std::string_view text, const CsvOptions& options, std::string name)
{
    CsvReader reader;
    reader.options = options;
    return reader.read(Cells(text), std::move(name));
}

Result<Schedule> readScheduleCsv(const TextSource& source, const CsvOptions& options, std::string name)
{
    CsvReader reader;
    reader.options = options;
    return reader.read(Cells(source), std::move(name));
}

Result<std::string> writeScheduleCsv(const Schedule& given, const CsvOptions& options)
{
    if (given.replicas > 1 && !replicasAlike(given))
        return fail(ErrorCode::Invalid,
                    fmt::format("its {} replicas differ; a schedule CSV holds one of them", given.replicas),
                    "write each replica's own schedule");
    const Schedule schedule = replicaSchedule(given, 0);
    if (!schedule.graph.isChain())
        return fail(ErrorCode::Invalid, "the stages don't form a chain, and a schedule CSV knows no other graph",
                    "store it in a run file");
    const bool old = options.dialect == CsvDialect::Old;
    if (options.pytorch && schedule.placement.hasCopies())
        return fail(ErrorCode::Invalid, "a stage has copies on two ranks; PyTorch keeps a stage on one rank",
                    "write it without the PyTorch restriction");
    const bool idle =
        !options.pytorch && !options.everyRow &&
        std::any_of(schedule.order.begin(), schedule.order.end(), [](const auto& ops) { return ops.empty(); });
    const bool settings =
        schedule.weights != WeightRule::Synchronous || !schedule.sliceLengths.empty() || given.replicas > 1 || idle;
    if (options.pytorch && given.replicas > 1)
        return fail(ErrorCode::Invalid,
                    fmt::format("the schedule has {} replicas; PyTorch's files can't express that", given.replicas),
                    "write one replica's own schedule");
    if (options.pytorch && settings)
        return fail(
            ErrorCode::Invalid,
            schedule.weights != WeightRule::Synchronous
                ? fmt::format("the weights are {}; PyTorch's files can't express that", toText(schedule.weights))
                : fmt::format("lengths of {} slices are given; PyTorch's files can't express that",
                              schedule.sliceLengths.size()),
            "write it without the PyTorch restriction");
    CsvReader check; // the same rules as for reading
    check.options = options;
    std::string out;
    if (settings) {
        out += '#';
        if (schedule.weights != WeightRule::Synchronous) out += fmt::format(" weights={}", toText(schedule.weights));
        for (std::size_t i = 0; i < schedule.sliceLengths.size(); ++i)
            out += fmt::format("{}{}", i == 0 ? " slices=" : ",", schedule.sliceLengths[i]);
        if (given.replicas > 1) out += fmt::format(" replicas={}", given.replicas);
        if (idle) out += fmt::format(" ranks={}", schedule.order.size());
        out += '\n';
    }
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        if (ops.empty()) out += ','; // blank cells, so that the row is seen also at the end of the file
        for (std::size_t i = 0; i < ops.size(); ++i) {
            auto cellText = [&](const Op& op) -> Result<std::string> {
                const std::string plain = toText(op);
                check.line = static_cast<int>(r) + (settings ? 2 : 1);
                check.cell = static_cast<int>(i) + 1;
                check.text = plain;
                STAGEWRIGHT_CHECK(check.checkPyTorch(op));
                if (!old || !isReturn(op.kind)) return plain;
                const std::size_t letter = plain.find_first_of("BI");
                return plain.substr(0, letter) + (isFullBackward(op.kind) ? "BW" : "B") + plain.substr(letter + 1);
            };
            STAGEWRIGHT_TRY(const auto first, cellText(ops[i]));
            if (!out.empty() && out.back() != '\n') out += ',';
            if (i + 1 >= ops.size() || !schedule.isPaired(static_cast<int>(r), i)) {
                out += first;
                continue;
            }
            out += '(' + first;
            for (bool more = true; more; more = i + 1 < ops.size() && schedule.isPaired(static_cast<int>(r), i)) {
                STAGEWRIGHT_TRY(const auto next, cellText(ops[++i]));
                check.text = next; // a view
                if (isMessage(ops[i].kind) != isMessage(ops[i - 1].kind))
                    return check.error(fmt::format(
                        "issued together with {}; a pair holds two compute ops, a group messages", toText(ops[i - 1])));
                out += ';' + next;
            }
            out += ')';
            out += !isMessage(ops[i].kind) ? overlap : options.pytorch ? batched : grouped;
        }
        out += '\n';
    }
    return out;
}

} // namespace stagewright
