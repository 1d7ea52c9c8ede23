// The blocks of a page as rows of the panel: prose, guesses, goals with meters and hints, questions, real runs,
// figures.
#include <algorithm>

#include <QButtonGroup>
#include <QComboBox>
#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "widgets/lessons/lesson_panel.h"
#include "widgets/lessons/lesson_text.h"
#include "widgets/lessons/meter_row.h"
#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

// Only what can be answered or run has an id.
QString idOf(const lessons::Block& block)
{
    if (const auto* predict = std::get_if<lessons::Predict>(&block)) return qs(predict->id);
    if (const auto* check = std::get_if<lessons::Check>(&block)) return qs(check->id);
    if (const auto* quiz = std::get_if<lessons::Quiz>(&block)) return qs(quiz->id);
    if (const auto* run = std::get_if<lessons::RunBlock>(&block)) return qs(run->id);
    return {};
}

} // namespace

QLabel* LessonPanel::prose(QVBoxLayout* layout, const char* role)
{
    QLabel* label = makeLabel({}, role, m_body);
    label->setWordWrap(true);
    label->setTextFormat(Qt::RichText);
    label->setTextInteractionFlags(Qt::TextBrowserInteraction);
    connect(label, &QLabel::linkActivated, this, [this](const QString& link) {
        if (link.startsWith("term:"_L1)) emit termAsked(link.mid(5));
    });
    label->hide();
    layout->addWidget(label);
    return label;
}

void LessonPanel::setProse(QLabel* label, const QString& markdown)
{
    if (label == nullptr) return;
    if (label->property("source").toString() == markdown && !label->text().isEmpty() == !markdown.isEmpty()) return;
    label->setProperty("source", markdown);
    // Terms are linked in the lesson's own text, once per page; verdicts and hints come and go.
    const bool links = label->property("role").toString() == "value"_L1 && label->property("linked").toBool();
    label->setText(lessonHtml(markdown, links ? &m_linked : nullptr));
    QPalette colours = label->palette();
    colours.setColor(QPalette::Link, m_theme->secondary);
    label->setPalette(colours);
    label->setAccessibleName(plainWords(markdown));
    label->setVisible(!markdown.isEmpty());
}

void LessonPanel::buildAnswer(Row& row, QVBoxLayout* layout, const std::string& id,
                              const std::vector<std::string>& choices, const QString& unit)
{
    auto* line = new QWidget(m_body);
    auto* flow = choices.size() > 3 ? static_cast<QBoxLayout*>(new QVBoxLayout(line)) : new QHBoxLayout(line);
    flow->setContentsMargins(0, 0, 0, 0);
    flow->setSpacing(6);
    if (choices.empty()) {
        row.field = new QLineEdit(line);
        row.field->setMaximumWidth(150);
        row.field->setAccessibleName(u"Your answer"_s);
        row.field->setToolTip(u"A number, or several separated by spaces; press Enter to answer"_s);
        flow->addWidget(row.field);
        if (!unit.isEmpty() && unit != "mark"_L1) flow->addWidget(makeLabel(unit, "secondary", line));
        auto* give = new QPushButton(u"Answer"_s, line);
        flow->addWidget(give);
        auto answer = [this, id = qs(id), field = row.field] {
            if (!field->text().trimmed().isEmpty()) emit said(id, field->text().trimmed());
        };
        connect(row.field, &QLineEdit::returnPressed, this, answer);
        connect(give, &QPushButton::clicked, this, answer);
    } else {
        auto* group = new QButtonGroup(line);
        for (const std::string& choice : lessons::buttonsOf(id, choices)) {
            auto* button = new QPushButton(qs(choice), line);
            button->setCheckable(true);
            group->addButton(button);
            flow->addWidget(button, 0, Qt::AlignLeft);
            row.choices.push_back(button);
            connect(button, &QPushButton::clicked, this,
                    [this, id = qs(id), choice = qs(choice)] { emit said(id, choice); });
        }
    }
    flow->addStretch(1);
    layout->addWidget(line);
    row.answer = line;
}

LessonPanel::Row LessonPanel::buildBlock(const lessons::Block& block, QVBoxLayout* layout)
{
    Row row;
    auto goalCard = [&](const QString& title) {
        auto* card = new QFrame(m_body);
        card->setObjectName(u"card"_s);
        card->setProperty("block", idOf(block));
        row.card = card;
        auto* inner = new QVBoxLayout(card);
        inner->setContentsMargins(13, 11, 13, 12);
        inner->setSpacing(7);
        if (!title.isEmpty()) inner->addWidget(makeLabel(title, "title", card));
        layout->addWidget(card);
        return inner;
    };
    auto withHints = [&](QVBoxLayout* inner, const std::string& id) {
        row.hints = new QVBoxLayout;
        row.hints->setSpacing(5);
        inner->addLayout(row.hints);
        row.hint = new QPushButton(m_body);
        row.hint->setObjectName(u"link"_s);
        connect(row.hint, &QPushButton::clicked, this, [this, id] { emit hintAsked(qs(id)); });
        inner->addWidget(row.hint, 0, Qt::AlignLeft);
        row.hint->hide();
    };
    if (std::holds_alternative<lessons::Prose>(block)) {
        row.text = prose(layout);
        row.text->setProperty("linked", true);
    } else if (const auto* predict = std::get_if<lessons::Predict>(&block)) {
        QVBoxLayout* inner = goalCard(u"Your guess"_s);
        row.text = prose(inner);
        buildAnswer(row, inner, predict->id, predict->choices, qs(predict->unit));
        row.verdict = prose(inner, row.plain = "secondary");
    } else if (const auto* check = std::get_if<lessons::Check>(&block)) {
        QVBoxLayout* inner = goalCard(check->graded ? u"Goal"_s : u"For comparison"_s);
        row.text = prose(inner);
        row.meters = new QWidget(m_body);
        auto* meters = new QVBoxLayout(row.meters);
        meters->setContentsMargins(0, 2, 0, 0);
        meters->setSpacing(2);
        inner->addWidget(row.meters);
        row.formula = prose(inner, "formula");
        row.verdict = prose(inner, "value");
        withHints(inner, check->id);
    } else if (const auto* quiz = std::get_if<lessons::Quiz>(&block)) {
        QVBoxLayout* inner = goalCard(u"Question"_s);
        row.text = prose(inner);
        buildAnswer(row, inner, quiz->id, quiz->choices, {});
        row.verdict = prose(inner, "value");
        withHints(inner, quiz->id);
    } else if (const auto* run = std::get_if<lessons::RunBlock>(&block)) {
        QVBoxLayout* inner =
            goalCard(m_lesson->all<lessons::RunBlock>().size() > 1 ? runWords(*run) : u"On this computer"_s);
        std::string command = "stagewright record";
        for (const std::string& one : run->arguments) command += ' ' + one;
        QString settings = recordedWords(*run);
        if (!settings.isEmpty()) settings[0] = settings.at(0).toUpper();
        auto* what = makeLabel(settings, "secondary", m_body, true);
        what->setWordWrap(true);
        what->setToolTip(u"In a terminal: %1"_s.arg(qs(command)));
        inner->addWidget(what);
        row.text = prose(inner);
        auto* line = new QHBoxLayout;
        row.run = new QPushButton(u"Run it for real"_s, m_body);
        row.run->setObjectName(u"primary"_s);
        row.run->setToolTip(u"Trains a small model under these schedules on this computer, for a few seconds to a "
                            "minute; can be cancelled"_s);
        row.open = new QPushButton(u"Open the run"_s, m_body);
        row.open->setToolTip(u"Its timeline, bubbles by cause and memory"_s);
        line->addWidget(row.run);
        line->addWidget(row.open);
        line->addStretch(1);
        inner->addLayout(line);
        const QString id = qs(run->id);
        connect(row.run, &QPushButton::clicked, this, [this, id] {
            if (m_state.running == id)
                emit cancelAsked();
            else
                emit runAsked(id);
        });
        connect(row.open, &QPushButton::clicked, this, [this, id] { emit runOpened(id); });
        row.progress = new QProgressBar(m_body);
        row.progress->setTextVisible(false);
        row.progress->hide();
        inner->addWidget(row.progress);
        row.verdict = prose(inner, "secondary");
        row.meters = new QWidget(m_body);
        auto* meters = new QVBoxLayout(row.meters);
        meters->setContentsMargins(0, 2, 0, 0);
        meters->setSpacing(2);
        inner->addWidget(row.meters);
        row.note = prose(inner, "value");
        connect(row.note, &QLabel::linkActivated, this, [this, id](const QString& link) {
            if (link == "proof"_L1) emit checkAsked(id);
        });
    } else if (const auto* figure = std::get_if<lessons::Figure>(&block)) {
        const bool shows = m_pages[static_cast<std::size_t>(m_page)].part == lessons::Part::Do; // to look at
        QVBoxLayout* inner = goalCard(shows ? QString() : u"Save figure"_s);
        row.picture = new QLabel(m_body);
        row.picture->setAccessibleName(u"The figure as it will be saved"_s);
        inner->addWidget(row.picture);
        row.caption = new QLineEdit(m_body);
        row.caption->setAccessibleName(u"Caption"_s);
        row.caption->setToolTip(
            u"Text under the figure, before the schedule, the costs and the source of the numbers"_s);
        inner->addWidget(row.caption);
        auto* line = new QHBoxLayout;
        auto* format = new QComboBox(m_body);
        format->setAccessibleName(u"Format"_s);
        for (const char* one : {"SVG", "PDF", "PNG"}) format->addItem(QString::fromLatin1(one));
        auto* keep = new QPushButton(u"Save figure…"_s, m_body);
        line->addWidget(format);
        line->addWidget(keep);
        line->addStretch(1);
        inner->addLayout(line);
        connect(keep, &QPushButton::clicked, this, [this, file = qs(figure->file), format, caption = row.caption] {
            emit figureAsked(file, format->currentText().toLower(), caption->text());
        });
        row.verdict = prose(inner, "secondary");
        for (QWidget* part :
             {static_cast<QWidget*>(row.caption), static_cast<QWidget*>(format), static_cast<QWidget*>(keep)})
            part->setVisible(!shows);
        if (shows) row.text = prose(inner, "secondary");
    }
    return row;
}

void LessonPanel::setMeters(Row& row, const std::vector<MeterReading>& meters)
{
    if (row.meters == nullptr) return;
    const QString key = keyOf(meters);
    if (key == row.metersShown) return;
    row.metersShown = key;
    QLayout* layout = row.meters->layout();
    while (QLayoutItem* item = layout->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    for (const MeterReading& meter : meters) layout->addWidget(new MeterRow(meter, *m_theme, row.meters));
    row.meters->setVisible(!meters.empty());
}

void LessonPanel::showRow(Row& row, const lessons::Block& block, const BlockReading& now)
{
    setProse(row.text, now.waits && std::holds_alternative<lessons::Prose>(block) ? QString() : now.text);
    if (row.card != nullptr) row.card->setVisible(!now.waits);
    const std::string id = idOf(block).toStdString();
    // A verdict only if there is something to judge.
    QString verdict = verdictOf(block, now);
    const bool passed = now.state == lessons::Verdict::Pass;
    const bool solved = passed && m_state.shown.count(id) > 0; // by the program
    setProse(row.formula, passed ? now.formula : QString());   // it would give the answer away
    if (std::holds_alternative<lessons::Predict>(block)) {
        if (passed && m_reading.guesses.empty()) verdict = u"Saved: you will see it again beside the answer."_s;
    } else if (solved) {
        verdict = u"**Shown**, not done. Restart the step and do it yourself, or do it with another number of "
                  "microbatches."_s +
                  u"\n\n"_s + verdict;
    } else if (passed && !now.medal.isEmpty()) {
        verdict = u"**%1.** %2"_s.arg(now.medal.at(0).toUpper() + now.medal.mid(1), verdict);
    }
    if (row.run == nullptr && row.picture == nullptr) {
        const bool graded =
            std::holds_alternative<lessons::Check>(block) || std::holds_alternative<lessons::Quiz>(block);
        const bool open = std::holds_alternative<lessons::Check>(block) && (!m_state.touched || now.unfinished);
        const bool failed = graded && now.state == lessons::Verdict::Fail && !open;
        if (open && !passed && !m_state.touched) verdict.clear();
        if (graded && !solved && !verdict.isEmpty() && (passed || failed)) verdict.prepend(passed ? u"✓ "_s : u"✗ "_s);
        setProse(row.verdict, verdict);
        if (row.verdict != nullptr)
            setRole(row.verdict, passed && graded && !solved ? "right" : failed ? "wrong" : row.plain);
    }
    if (row.field != nullptr || !row.choices.empty()) {
        const auto said = m_state.said.find(id);
        const QString words = said == m_state.said.end() ? QString() : qs(said->second);
        if (row.field != nullptr && !row.field->hasFocus()) row.field->setText(words);
        for (QPushButton* choice : row.choices) choice->setChecked(choice->text() == words);
        // the reply repeats what was answered
        row.answer->setVisible(!(std::holds_alternative<lessons::Quiz>(block) && passed));
    }
    if (row.run == nullptr) setMeters(row, now.meters);
    if (row.hint != nullptr) showHints(row, id, passed);
    if (row.run != nullptr) showRun(row, id, now);
    if (row.picture != nullptr) showFigure(row, std::get<lessons::Figure>(block), now);
}

void LessonPanel::showHints(Row& row, const std::string& id, bool passed)
{
    const auto hints = m_reading.hints.find(id);
    const int count = hints == m_reading.hints.end() ? 0 : static_cast<int>(hints->second.size());
    const auto given = m_state.hints.find(id);
    const int shown = std::min(count, given == m_state.hints.end() ? 0 : given->second);
    row.hint->setVisible(count > shown && !passed);
    row.hint->setText(u"Hint %1 of %2"_s.arg(shown + 1).arg(count));
    const auto edits = [&](int k) { // that a hint makes
        const auto all = m_lesson->hintsOf(id);
        QStringList words;
        if (k < static_cast<int>(all.size()))
            for (const lessons::EditCommand& edit : all[static_cast<std::size_t>(k)]->edits) words << qs(edit.text());
        return words.join(u"; "_s);
    };
    if (const QString makes = edits(shown); !makes.isEmpty())
        row.hint->setText(u"Hint %1 of %2: make one move for me"_s.arg(shown + 1).arg(count));
    row.hint->setToolTip(!edits(shown).isEmpty()
                             ? u"Changes the canvas; can be undone  (Ctrl+Alt+H)"_s
                             : u"First a pointer, then the principle, then one move  (Ctrl+Alt+H)"_s);
    if (shown != row.hintsShown) {
        row.hintsShown = shown;
        while (QLayoutItem* item = row.hints->takeAt(0)) {
            delete item->widget();
            delete item;
        }
        for (int k = 0; k < shown; ++k)
            setProse(prose(row.hints, "secondary"),
                     u"*Hint %1:* "_s.arg(k + 1) +
                         (edits(k).isEmpty() ? QString() : u"the program made `%1`. "_s.arg(edits(k))) +
                         hints->second[static_cast<std::size_t>(k)]);
    }
}

void LessonPanel::showRun(Row& row, const std::string& id, const BlockReading& now)
{
    const bool running = m_state.running == qs(id);
    const bool fresh = now.state == lessons::Verdict::Open;
    row.run->setText(running               ? u"Cancel"_s
                     : !fresh              ? u"Run it again"_s
                     : m_runAll != nullptr ? u"Run this one"_s
                                           : withExpectedTime(u"Run it for real"_s, expectedSeconds()));
    row.run->setEnabled(running || m_state.running.isEmpty());
    row.open->setVisible(!running && now.state != lessons::Verdict::Open);
    row.progress->setVisible(running);
    row.progress->setRange(0, m_state.runningShare < 0 ? 0 : 100);
    if (m_state.runningShare >= 0) row.progress->setValue(m_state.runningShare);
    std::vector<MeterReading> goals;
    QStringList said;
    for (const BlockReading& goal : now.goals) {
        if (now.state == lessons::Verdict::Open && goal.state == lessons::Verdict::Open) continue;
        if (!goal.text.isEmpty()) { // the sentence has the numbers that matter
            MeterReading meter = goal.meters.empty() ? MeterReading() : goal.meters.front();
            meter.said = true;
            meter.subject = plainWords(goal.text);
            meter.holds = goal.state == lessons::Verdict::Pass;
            meter.share = -1;
            goals.push_back(meter);
        }
        if (!goal.verdict.isEmpty() && goal.state != lessons::Verdict::Pass) said << goal.verdict;
    }
    setMeters(row, goals);
    QString words = running ? m_state.runningWords : said.join(u"\n\n"_s);
    if (!running && now.state == lessons::Verdict::Fail) words = u"**Not as predicted.** "_s + words;
    setProse(row.verdict, words);
    const auto note = m_state.notes.find(id);
    setProse(row.note, note == m_state.notes.end() ? QString() : note->second);
}

void LessonPanel::showFigure(Row& row, const lessons::Figure& figure, const BlockReading& now)
{
    const auto picture = m_state.figures.find(figure.file);
    row.picture->setVisible(picture != m_state.figures.end());
    if (picture != m_state.figures.end()) {
        row.picture->setPixmap(picture->second);
        row.picture->setFixedSize(picture->second.deviceIndependentSize().toSize());
    }
    if (row.caption->text().isEmpty()) {
        row.caption->setText(plainWords(now.text));
        row.caption->setCursorPosition(0); // its start is what one reads
    }
    setProse(row.verdict, now.verdict);
}

} // namespace stagewright
