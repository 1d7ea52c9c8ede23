#include "app/ui/mapper/mapper_panel.h"

#include <algorithm>

#include <QComboBox>
#include <QFontDatabase>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollArea>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QVBoxLayout>

#include "traces/foreign/label_rules.h"
#include "traces/import/rule_draft.h"
#include "widgets/document/figure_table.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/runs/runs_model.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int ranksShown = 8, opsShown = 28;

QString text(const std::string& words) { return QString::fromStdString(words); }

QString kindTitle(const std::string& kind)
{
    if (kind == "F") return u"forward"_s;
    if (kind == "B") return u"backward"_s;
    if (kind == "I") return u"input gradient"_s;
    if (kind == "W") return u"weight gradient"_s;
    if (kind == "R") return u"recompute"_s;
    if (kind == "OPT") return u"optimizer"_s;
    if (kind == "step") return u"step"_s;
    return {};
}

// The rule that one line is; nothing for a comment or a wrong line.
std::optional<LabelMeaning> meaningBy(const QString& line, const std::string& name)
{
    if (line.trimmed().isEmpty() || line.trimmed().startsWith(u'#')) return std::nullopt;
    const auto rules = LabelRules::parse(line.toStdString());
    if (!rules) return std::nullopt;
    auto meaning = rules->meaningOf(name);
    if (!meaning || meaning->dialect != LabelDialect::User) return std::nullopt;
    return meaning;
}

QString orderText(const Schedule& schedule)
{
    QStringList lines;
    for (int rank = 0; rank < std::min(schedule.ranks, ranksShown); ++rank) {
        QStringList ops;
        const auto& order = schedule.order[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), opsShown); ++i) ops << text(toText(order[i]));
        if (order.size() > opsShown) ops << u"…"_s;
        lines << u"%1  %2"_s.arg(rank, 3).arg(ops.join(u' '));
    }
    if (schedule.ranks > ranksShown) lines << u"  …"_s;
    return lines.join(u'\n');
}

} // namespace

MapperPanel::MapperPanel(QWidget* parent) : QWidget(parent)
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_state = makeLabel({}, "secondary", this);
    m_state->setWordWrap(true);
    m_state->setContentsMargins(12, 6, 12, 6);
    layout->addWidget(m_state);
    auto* parts = new QSplitter(this);
    parts->setChildrenCollapsible(false);
    layout->addWidget(parts, 1);

    std::vector<FigureColumn> columns{
        {u"Name of the range"_s, u"One of its names; numbers differ between ranges"_s, false, 190},
        {u"Looks like"_s, u"By the words of its name"_s, false, 80},
        {u"Ranges"_s, u"On all ranks"_s, true, 68},
        {u"Ranks"_s, u"That have some"_s, true, 62},
        {u"Total"_s, u"Sum of their durations on the host"_s, true, 76}};
    m_names = new FigureTable(u"Names of ranges"_s, std::move(columns), -1, parts);
    m_names->setObjectName(u"rangeNames"_s);
    connect(m_names, &FigureTable::chosen, this, [this](int row) {
        if (m_filling || !m_patterns) return;
        m_row = row;
        showName();
    });
    auto* form = new QWidget(parts);
    buildForm(form);
    auto* rules = new QWidget(parts);
    buildRules(rules);
    parts->addWidget(m_names);
    parts->addWidget(form);
    parts->addWidget(rules);
    parts->setStretchFactor(0, 3);
    parts->setStretchFactor(1, 2);
    parts->setStretchFactor(2, 4);
    parts->setSizes({480, 300, 700});
    setPatterns(nullptr, u"No run is shown. Choose one in the list, or open a file (Ctrl+O)."_s);
}

void MapperPanel::buildForm(QWidget* page)
{
    auto* layout = new QVBoxLayout(page);
    layout->setContentsMargins(12, 8, 12, 8);
    m_name = makeLabel({}, "value", page, true);
    m_name->setWordWrap(true);
    layout->addWidget(m_name);
    m_form = new QFormLayout;
    m_form->setVerticalSpacing(5);
    layout->addLayout(m_form);
    m_meaning = new QComboBox(page);
    m_meaning->setObjectName(u"meaning"_s);
    m_meaning->setAccessibleName(u"What this range is"_s);
    m_meaning->setToolTip(u"What this range and all ranges of its name are"_s);
    m_meaning->addItem(u"nothing of the schedule"_s, QString());
    for (const auto& [kind, title] :
         {std::pair("F", u"a forward"_s), std::pair("B", u"a backward"_s),
          std::pair("I", u"a backward's input gradient"_s), std::pair("W", u"a backward's weight gradient"_s),
          std::pair("R", u"a recomputation"_s), std::pair("OPT", u"the optimizer"_s),
          std::pair("step", u"a whole step"_s), std::pair("ignore", u"to be ignored"_s)})
        m_meaning->addItem(title, QString::fromLatin1(kind));
    connect(m_meaning, &QComboBox::activated, this, &MapperPanel::writeRule);
    m_form->addRow(u"This is"_s, m_meaning);
    m_implied = makeLabel({}, "secondary", page);
    m_implied->setWordWrap(true);
    layout->addWidget(m_implied);
    layout->addStretch(1);
}

void MapperPanel::buildRules(QWidget* page)
{
    auto* layout = new QVBoxLayout(page);
    layout->setContentsMargins(12, 8, 12, 8);
    layout->setSpacing(6);
    auto* buttons = new QHBoxLayout;
    const auto button = [&](const QString& title, const QString& tip, auto signal) {
        auto* made = new QPushButton(title, page);
        made->setAutoDefault(false);
        made->setToolTip(tip);
        connect(made, &QPushButton::clicked, this, signal);
        buttons->addWidget(made);
        return made;
    };
    m_suggest =
        button(u"Suggest"_s, u"Drafts rules from the names that look like passes"_s, &MapperPanel::suggestAsked);
    m_open = button(u"Open…"_s, u"Rules from a file"_s, &MapperPanel::openAsked);
    m_save = button(u"Save…"_s, u"Saves the rules as a file for import --rules"_s, &MapperPanel::saveAsked);
    buttons->addStretch(1);
    m_apply = button(u"Import with these rules…"_s, u"Imports the run's traces again, with its ops"_s,
                     &MapperPanel::applyAsked);
    layout->addLayout(buttons);
    m_rules = new QPlainTextEdit(page);
    m_rules->setObjectName(u"rangeRules"_s);
    m_rules->setAccessibleName(u"Rules"_s);
    m_rules->setToolTip(u"One rule per line: the kind of op, then the pattern of a name"_s);
    m_rules->setPlaceholderText(u"F  forward of {microbatch}"_s);
    m_rules->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_rules->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_rules->setTabChangesFocus(true);
    m_rules->setMinimumHeight(60);
    layout->addWidget(m_rules, 2);
    m_answer = makeLabel({}, "headline", page, true);
    m_answer->setWordWrap(true);
    layout->addWidget(m_answer);
    auto* scroll = new QScrollArea(page);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setAccessibleName(u"What the rules match"_s);
    auto* found = new QWidget(scroll);
    found->setObjectName(u"panelBody"_s);
    auto* lines = new QVBoxLayout(found);
    lines->setContentsMargins(0, 0, 0, 0);
    m_matches = makeLabel({}, "secondary", found, true);
    m_matches->setWordWrap(true);
    m_order = makeLabel({}, "faint", found, true);
    m_order->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    lines->addWidget(m_matches);
    lines->addWidget(m_order);
    lines->addStretch(1);
    scroll->setWidget(found);
    layout->addWidget(scroll, 2);
    connect(m_rules, &QPlainTextEdit::textChanged, this, [this] {
        if (m_filling) return;
        showName();
        emit rulesChanged();
    });
}

void MapperPanel::setWorking() { m_state->setText(u"Computing…"_s); }

void MapperPanel::setPatterns(std::shared_ptr<const std::vector<NamePattern>> patterns, const QString& reason)
{
    m_patterns = std::move(patterns);
    m_pieces.clear();
    m_row = -1;
    std::vector<std::vector<FigureCell>> rows;
    if (m_patterns)
        for (const NamePattern& pattern : *m_patterns) {
            m_pieces.push_back(pattern.pieces);
            rows.push_back({{text(pattern.example), 0, text(patternText(pattern.pieces))},
                            {kindTitle(pattern.kind), 0, {}},
                            {u"%L1"_s.arg(pattern.ranges), static_cast<double>(pattern.ranges), {}},
                            {QString::number(pattern.ranks), static_cast<double>(pattern.ranks), {}},
                            {durationText(pattern.total, {}), static_cast<double>(pattern.total), {}}});
        }
    m_filling = true;
    m_names->setRows(std::move(rows));
    m_filling = false;
    const bool any = m_patterns && !m_patterns->empty();
    m_state->setText(
        any ? u"Choose a name, or a range in the timeline, and say what it is. The rules and what they give follow."_s
            : reason);
    for (QWidget* part : std::initializer_list<QWidget*>{m_names, m_rules, m_suggest, m_open, m_save})
        part->setEnabled(any);
    m_apply->setEnabled(false);
    m_answer->clear();
    m_matches->clear();
    m_order->clear();
    showName();
}

void MapperPanel::setRules(const QString& rules)
{
    m_rules->setPlainText(rules); // asks through textChanged
}

QString MapperPanel::rules() const { return m_rules->toPlainText(); }

void MapperPanel::setPreview(const Result<RulePreview>& preview)
{
    QStringList lines;
    m_order->clear();
    m_apply->setEnabled(preview.has_value() && preview->matched > 0);
    if (!preview) {
        setRole(m_answer, "worse");
        m_answer->setText(sentence(text(preview.error().message)));
        if (!preview.error().remedy.empty()) lines << sentence(text(preview.error().remedy));
        m_matches->setText(lines.join(u'\n'));
        return;
    }
    const Schedule* schedule = preview->rebuilt.schedule.get();
    setRole(m_answer, preview->whole() ? "headline" : "value");
    if (schedule != nullptr)
        m_answer->setText(u"%1: %2, %3, %4, %5"_s.arg(
            preview->rebuilt.recognised.empty() ? u"Custom order"_s : scheduleTitle(preview->rebuilt.recognised),
            countText(schedule->ranks, u"1 rank"_s, u"%L1 ranks"_s),
            countText(schedule->stages, u"1 stage"_s, u"%L1 stages"_s),
            countText(schedule->microbatches, u"1 microbatch"_s, u"%L1 microbatches"_s),
            countText(preview->steps, u"1 step"_s, u"%L1 steps"_s)));
    else
        m_answer->setText(rules().trimmed().isEmpty() ? u"No rules yet"_s : sentence(text(toText(*preview))));
    for (const RuleMatches& rule : preview->rules)
        lines << (rule.ranges == 0 ? u"line %1, %2: no range"_s.arg(rule.line).arg(text(rule.kind))
                                   : u"line %1, %2: %3 on %4"_s.arg(rule.line).arg(
                                         text(rule.kind), countText(rule.ranges, u"1 range"_s, u"%L1 ranges"_s),
                                         countText(rule.ranks, u"1 rank"_s, u"%L1 ranks"_s)));
    if (preview->matched > 0)
        lines << (preview->orphans == 0
                      ? u"Every range has its counterpart."_s
                      : u"%1 without a counterpart:"_s.arg(countText(preview->orphans, u"1 range"_s, u"%L1 ranges"_s)));
    for (const std::string& remark : preview->remarks) lines << sentence(text(remark));
    m_matches->setText(lines.join(u'\n'));
    if (schedule != nullptr) m_order->setText(orderText(*schedule));
}

QString MapperPanel::answerText() const { return m_answer->text() + u'\n' + m_matches->text(); }

bool MapperPanel::chooseName(const std::string& name)
{
    if (!m_patterns) return false;
    for (std::size_t i = 0; i < m_patterns->size(); ++i) {
        std::vector<NamePiece> pieces = (*m_patterns)[i].pieces;
        for (NamePiece& piece : pieces) piece.least = 0;
        if (!meaningBy(u"ignore "_s + text(patternText(pieces)), name)) continue;
        chooseRow(static_cast<int>(i));
        return true;
    }
    return false;
}

void MapperPanel::chooseRow(int row)
{
    m_row = row;
    m_filling = true;
    const auto* sorted = qobject_cast<const QSortFilterProxyModel*>(m_names->model());
    m_names->setCurrentIndex(sorted->mapFromSource(sorted->sourceModel()->index(row, 0)));
    m_filling = false;
    showName();
}

QString MapperPanel::kindOf(const NamePattern& pattern) const
{
    for (const QString& line : rules().split(u'\n'))
        if (meaningBy(line, pattern.example)) return line.trimmed().section(QRegularExpression(u"\\s"_s), 0, 0);
    return {};
}

void MapperPanel::showName()
{
    const bool any = m_patterns && m_row >= 0;
    m_meaning->setEnabled(any);
    while (m_form->rowCount() > 1) m_form->removeRow(1);
    m_numbers.clear();
    m_implied->clear();
    m_name->setText(any ? text((*m_patterns)[static_cast<std::size_t>(m_row)].example) : u"No name chosen"_s);
    if (!any) return;
    const NamePattern& pattern = (*m_patterns)[static_cast<std::size_t>(m_row)];
    const QString kind = kindOf(pattern);
    m_meaning->setCurrentIndex(std::max(0, m_meaning->findData(kind)));
    int number = 0;
    for (NamePiece& piece : m_pieces[static_cast<std::size_t>(m_row)]) {
        if (!piece.number) continue;
        auto* box = new QComboBox(this);
        for (const QString& title :
             {u"any number"_s, u"the microbatch"_s, u"the stage"_s, u"the chunk"_s, u"the slice"_s, u"the step"_s})
            box->addItem(title);
        box->setCurrentIndex(static_cast<int>(piece.meaning));
        box->setAccessibleName(u"Number %1 of the name"_s.arg(++number));
        box->setToolTip(u"What this number of the name says"_s);
        connect(box, &QComboBox::activated, this, [this, &piece](int index) {
            piece.meaning = static_cast<NumberMeaning>(index);
            writeRule();
        });
        m_form->addRow(piece.least == piece.most ? u"Number %1"_s.arg(piece.least)
                                                 : u"Number %1 to %2"_s.arg(piece.least).arg(piece.most),
                       box);
        m_numbers.push_back(box);
    }
    if (kind.isEmpty() || kind == "ignore"_L1 || kind == "step"_L1) return;
    const auto says = [&](NumberMeaning meaning) {
        const auto& pieces = m_pieces[static_cast<std::size_t>(m_row)];
        return std::any_of(pieces.begin(), pieces.end(),
                           [meaning](const NamePiece& piece) { return piece.number && piece.meaning == meaning; });
    };
    QStringList implied;
    if (!says(NumberMeaning::Stage))
        implied << (says(NumberMeaning::Chunk) ? u"The stage follows from rank and chunk."_s
                                               : u"The stage is the rank."_s);
    if (!says(NumberMeaning::Microbatch)) implied << u"Microbatches are counted."_s;
    m_implied->setText(implied.join(u' '));
}

void MapperPanel::setMeaning(const QString& kind)
{
    if (m_row < 0) return;
    m_meaning->setCurrentIndex(std::max(0, m_meaning->findData(kind)));
    writeRule();
}

void MapperPanel::setNumber(int number, NumberMeaning meaning)
{
    if (m_row < 0) return;
    for (NamePiece& piece : m_pieces[static_cast<std::size_t>(m_row)])
        if (piece.number && number-- == 0) piece.meaning = meaning;
    writeRule();
}

void MapperPanel::writeRule()
{
    if (m_row < 0 || !m_patterns) return;
    const NamePattern& pattern = (*m_patterns)[static_cast<std::size_t>(m_row)];
    const QString kind = m_meaning->currentData().toString();
    const QString rule =
        kind.isEmpty() ? QString()
                       : text(ruleLine(kind.toStdString(), patternText(m_pieces[static_cast<std::size_t>(m_row)])));
    QStringList kept;
    bool placed = rule.isEmpty();
    for (const QString& line : rules().split(u'\n')) {
        if (!meaningBy(line, pattern.example)) {
            kept << line;
        } else if (!placed) {
            kept << rule;
            placed = true;
        }
    }
    while (!kept.isEmpty() && kept.back().trimmed().isEmpty()) kept.removeLast();
    if (!placed) kept << rule;
    m_rules->setPlainText(kept.join(u'\n') + u'\n');
}

} // namespace stagewright
