#include "widgets/mapper/mapper_panel.h"

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
#include "widgets/device/figure_table.h"
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
    if (kind == "F") return MapperPanel::tr("forward");
    if (kind == "B") return MapperPanel::tr("backward");
    if (kind == "I") return MapperPanel::tr("input gradient");
    if (kind == "W") return MapperPanel::tr("weight gradient");
    if (kind == "R") return MapperPanel::tr("recompute");
    if (kind == "OPT") return MapperPanel::tr("optimizer");
    if (kind == "step") return MapperPanel::tr("step");
    return {};
}

// The rule that one line is; nothing for a comment or a wrong line.
std::optional<LabelMeaning> meaningBy(const QString& line, const std::string& name)
{
    if (line.trimmed().isEmpty() || line.trimmed().startsWith(QLatin1Char('#'))) return std::nullopt;
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
        if (order.size() > opsShown) ops << QStringLiteral("…");
        lines << QStringLiteral("%1  %2").arg(rank, 3).arg(ops.join(QLatin1Char(' ')));
    }
    if (schedule.ranks > ranksShown) lines << QStringLiteral("  …");
    return lines.join(QLatin1Char('\n'));
}

} // namespace

MapperPanel::MapperPanel(QWidget* parent) : QWidget(parent)
{
    setObjectName(QStringLiteral("panel"));
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
        {tr("Name of the range"), tr("One of its names; numbers differ between ranges"), false, 190},
        {tr("Looks like"), tr("By the words of its name"), false, 80},
        {tr("Ranges"), tr("On all ranks"), true, 68},
        {tr("Ranks"), tr("That have some"), true, 62},
        {tr("Total"), tr("Sum of their durations on the host"), true, 76}};
    m_names = new FigureTable(tr("Names of ranges"), std::move(columns), -1, parts);
    m_names->setObjectName(QStringLiteral("rangeNames"));
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
    setPatterns(nullptr, tr("No run is shown. Choose one in the list, or open a file (Ctrl+O)."));
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
    m_meaning->setObjectName(QStringLiteral("meaning"));
    m_meaning->setAccessibleName(tr("What this range is"));
    m_meaning->setToolTip(tr("What this range and all ranges of its name are"));
    m_meaning->addItem(tr("nothing of the schedule"), QString());
    for (const auto& [kind, title] :
         {std::pair("F", tr("a forward")), std::pair("B", tr("a backward")),
          std::pair("I", tr("a backward's input gradient")), std::pair("W", tr("a backward's weight gradient")),
          std::pair("R", tr("a recomputation")), std::pair("OPT", tr("the optimizer")),
          std::pair("step", tr("a whole step")), std::pair("ignore", tr("to be ignored"))})
        m_meaning->addItem(title, QString::fromLatin1(kind));
    connect(m_meaning, &QComboBox::activated, this, &MapperPanel::writeRule);
    m_form->addRow(tr("This is"), m_meaning);
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
        button(tr("Suggest"), tr("Drafts rules from the names that look like passes"), &MapperPanel::suggestAsked);
    m_open = button(tr("Open…"), tr("Rules from a file"), &MapperPanel::openAsked);
    m_save = button(tr("Save…"), tr("Saves the rules as a file for import --rules"), &MapperPanel::saveAsked);
    buttons->addStretch(1);
    m_apply = button(tr("Import with these rules…"), tr("Imports the run's traces again, with its ops"),
                     &MapperPanel::applyAsked);
    layout->addLayout(buttons);
    m_rules = new QPlainTextEdit(page);
    m_rules->setObjectName(QStringLiteral("rangeRules"));
    m_rules->setAccessibleName(tr("Rules"));
    m_rules->setToolTip(tr("One rule per line: the kind of op, then the pattern of a name"));
    m_rules->setPlaceholderText(tr("F  forward of {microbatch}"));
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
    scroll->setAccessibleName(tr("What the rules match"));
    auto* found = new QWidget(scroll);
    found->setObjectName(QStringLiteral("panelBody"));
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

void MapperPanel::setWorking() { m_state->setText(tr("Computing…")); }

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
                            {QStringLiteral("%L1").arg(pattern.ranges), static_cast<double>(pattern.ranges), {}},
                            {QString::number(pattern.ranks), static_cast<double>(pattern.ranks), {}},
                            {durationText(pattern.total, {}), static_cast<double>(pattern.total), {}}});
        }
    m_filling = true;
    m_names->setRows(std::move(rows));
    m_filling = false;
    const bool any = m_patterns && !m_patterns->empty();
    m_state->setText(
        any ? tr("Choose a name, or a range in the timeline, and say what it is. The rules and what they give follow.")
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
        m_matches->setText(lines.join(QLatin1Char('\n')));
        return;
    }
    const Schedule* schedule = preview->rebuilt.schedule.get();
    setRole(m_answer, preview->whole() ? "headline" : "value");
    if (schedule != nullptr)
        m_answer->setText(tr("%1: %2, %3, %4, %5")
                              .arg(preview->rebuilt.recognised.empty() ? tr("Custom order")
                                                                       : scheduleTitle(preview->rebuilt.recognised),
                                   countText(schedule->ranks, tr("1 rank"), tr("%L1 ranks")),
                                   countText(schedule->stages, tr("1 stage"), tr("%L1 stages")),
                                   countText(schedule->microbatches, tr("1 microbatch"), tr("%L1 microbatches")),
                                   countText(preview->steps, tr("1 step"), tr("%L1 steps"))));
    else
        m_answer->setText(rules().trimmed().isEmpty() ? tr("No rules yet") : sentence(text(toText(*preview))));
    for (const RuleMatches& rule : preview->rules)
        lines << (rule.ranges == 0 ? tr("line %1, %2: no range").arg(rule.line).arg(text(rule.kind))
                                   : tr("line %1, %2: %3 on %4")
                                         .arg(rule.line)
                                         .arg(text(rule.kind), countText(rule.ranges, tr("1 range"), tr("%L1 ranges")),
                                              countText(rule.ranks, tr("1 rank"), tr("%L1 ranks"))));
    if (preview->matched > 0)
        lines << (preview->orphans == 0 ? tr("Every range has its counterpart.")
                                        : tr("%1 without a counterpart:")
                                              .arg(countText(preview->orphans, tr("1 range"), tr("%L1 ranges"))));
    for (const std::string& remark : preview->remarks) lines << sentence(text(remark));
    m_matches->setText(lines.join(QLatin1Char('\n')));
    if (schedule != nullptr) m_order->setText(orderText(*schedule));
}

QString MapperPanel::answerText() const { return m_answer->text() + QLatin1Char('\n') + m_matches->text(); }

bool MapperPanel::chooseName(const std::string& name)
{
    if (!m_patterns) return false;
    for (std::size_t i = 0; i < m_patterns->size(); ++i) {
        std::vector<NamePiece> pieces = (*m_patterns)[i].pieces;
        for (NamePiece& piece : pieces) piece.least = 0;
        if (!meaningBy(QStringLiteral("ignore ") + text(patternText(pieces)), name)) continue;
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
    for (const QString& line : rules().split(QLatin1Char('\n')))
        if (meaningBy(line, pattern.example))
            return line.trimmed().section(QRegularExpression(QStringLiteral("\\s")), 0, 0);
    return {};
}

void MapperPanel::showName()
{
    const bool any = m_patterns && m_row >= 0;
    m_meaning->setEnabled(any);
    while (m_form->rowCount() > 1) m_form->removeRow(1);
    m_numbers.clear();
    m_implied->clear();
    m_name->setText(any ? text((*m_patterns)[static_cast<std::size_t>(m_row)].example) : tr("No name chosen"));
    if (!any) return;
    const NamePattern& pattern = (*m_patterns)[static_cast<std::size_t>(m_row)];
    const QString kind = kindOf(pattern);
    m_meaning->setCurrentIndex(std::max(0, m_meaning->findData(kind)));
    int number = 0;
    for (NamePiece& piece : m_pieces[static_cast<std::size_t>(m_row)]) {
        if (!piece.number) continue;
        auto* box = new QComboBox(this);
        for (const QString& title : {tr("any number"), tr("the microbatch"), tr("the stage"), tr("the chunk"),
                                     tr("the slice"), tr("the step")})
            box->addItem(title);
        box->setCurrentIndex(static_cast<int>(piece.meaning));
        box->setAccessibleName(tr("Number %1 of the name").arg(++number));
        box->setToolTip(tr("What this number of the name says"));
        connect(box, &QComboBox::activated, this, [this, &piece](int index) {
            piece.meaning = static_cast<NumberMeaning>(index);
            writeRule();
        });
        m_form->addRow(piece.least == piece.most ? tr("Number %1").arg(piece.least)
                                                 : tr("Number %1 to %2").arg(piece.least).arg(piece.most),
                       box);
        m_numbers.push_back(box);
    }
    if (kind.isEmpty() || kind == QLatin1String("ignore") || kind == QLatin1String("step")) return;
    const auto says = [&](NumberMeaning meaning) {
        const auto& pieces = m_pieces[static_cast<std::size_t>(m_row)];
        return std::any_of(pieces.begin(), pieces.end(),
                           [meaning](const NamePiece& piece) { return piece.number && piece.meaning == meaning; });
    };
    QStringList implied;
    if (!says(NumberMeaning::Stage))
        implied << (says(NumberMeaning::Chunk) ? tr("The stage follows from rank and chunk.")
                                               : tr("The stage is the rank."));
    if (!says(NumberMeaning::Microbatch)) implied << tr("Microbatches are counted.");
    m_implied->setText(implied.join(QLatin1Char(' ')));
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
    for (const QString& line : rules().split(QLatin1Char('\n'))) {
        if (!meaningBy(line, pattern.example)) {
            kept << line;
        } else if (!placed) {
            kept << rule;
            placed = true;
        }
    }
    while (!kept.isEmpty() && kept.back().trimmed().isEmpty()) kept.removeLast();
    if (!placed) kept << rule;
    m_rules->setPlainText(kept.join(QLatin1Char('\n')) + QLatin1Char('\n'));
}

} // namespace stagewright
